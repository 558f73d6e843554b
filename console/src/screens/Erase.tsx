/** Erase: what is to go, the plan of it, and the certificates of what went. */

import "./maintenance.css";
import { useAddress } from "../address";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { Page } from "../parts/Page";
import { Empty } from "../parts/States";
import { seen } from "../parts/seen";
import { Certificates } from "./erase/Certificates";
import { Finder } from "./erase/Finder";
import { Plan } from "./erase/Plan";
import { REASONS, type Chosen, type Reason, type Selection, type Way } from "./erase/selection";

export function Erase() {
  const address = useAddress();
  const way: Way = (["subject", "source"] as const).find((each) => address.get(each)) ?? "ids";
  const value = address.get(way);
  const reason = (address.get("reason") || "request") as Reason;
  const ids = address
    .get("ids")
    .split(/[\s,]+/)
    .filter(Boolean);
  const also = address.all("also");
  const include_citing = address.get("citing") === "1";
  const chosen: Chosen | null = !value
    ? null
    : way === "ids"
      ? { ids, reason, include_citing }
      : { [way]: value, ids: also, reason, include_citing };
  const choose = (to: Selection) =>
    address.set({ ids: null, subject: null, source: null, also: null, ...to }, { push: true });
  return (
    <Page title="Erase" lede="for good: nothing brings it back" json="/memory/commits?kind=erase">
      <div class="two plan">
        <div class="card pad stack">
          <form class="stack" onSubmit={(event) => event.preventDefault()}>
            {chosen ? (
              <p class="line">
                <b>
                  {way === "ids" ? (
                    counted(ids.length, "memory", "memories")
                  ) : way === "subject" ? (
                    <>All about {seen(value)}</>
                  ) : (
                    <>All from {seen(value)}</>
                  )}
                  {way !== "ids" && also.length ? `, and ${counted(also.length, "memory", "memories")} more` : ""}
                </b>
                <Button small tone="quiet" onClick={() => choose({})}>
                  Choose something else
                </Button>
              </p>
            ) : (
              <Finder begin={address.get("who")} onChoose={choose} />
            )}
            <label class="field">
              <span>Reason (the certificate repeats it)</span>
              <select value={reason} onChange={(event) => address.set({ reason: event.currentTarget.value })}>
                {Object.entries(REASONS).map(([name, title]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            <label class="tick">
              <input
                type="checkbox"
                checked={include_citing}
                onChange={(event) => address.set({ citing: event.currentTarget.checked ? "1" : null })}
              />
              Also erase memories that derive from it or cite it
            </label>
          </form>
          {chosen ? (
            <Plan
              key={JSON.stringify(chosen)}
              chosen={chosen}
              onMore={(id) => address.set(way === "ids" ? { ids: [...ids, id].join(" ") } : { also: [...also, id] })}
            />
          ) : (
            <Empty title="Name what is to go">
              Then comes the plan: what would be destroyed and what would stay. Nothing is changed before you type its
              confirmation. To keep something and have no agent see it, forget it or take it out of use instead.
            </Empty>
          )}
        </div>
        <Certificates />
      </div>
    </Page>
  );
}
