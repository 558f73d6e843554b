/** Erase: what goes, what stays and why, typed confirmation, and the certificate. */

import "./tending.css";
import { useState } from "preact/hooks";
import { BASE, useAddress } from "../address";
import { api, ask, type Answer, type Problem, type Schemas } from "../api";
import { changed } from "../live";
import { useGet, useLoad } from "../load";
import { mayChange } from "../session";
import { Button } from "../parts/Button";
import { counted } from "../parts/Contain";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Failed, Shown } from "../parts/States";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { Typed } from "../parts/Typed";
import { seen } from "../parts/seen";

type Reason = keyof typeof REASONS;
type Chosen = { ids?: string[]; subject?: string; source?: string; reason: Reason; include_citing: boolean };

const REASONS = {
  request: "somebody asked for it",
  consent: "consent was withdrawn",
  retention: "it was kept for long enough",
  mistake: "it should never have been here",
  secret: "it holds a secret",
  other: "another reason",
} as const;
const WAYS = { ids: "Memories, by id", subject: "All about a subject", source: "All from a source" } as const;
type Way = keyof typeof WAYS;

export function Erase() {
  const address = useAddress();
  const way = (["subject", "source"] as const).find((each) => address.get(each)) ?? ((address.get("way") || "ids") as Way);
  const value = address.get(way);
  const reason = (address.get("reason") || "request") as Reason;
  const ids = address.get("ids").split(/[\s,]+/).filter(Boolean);
  const include_citing = address.get("citing") === "1";
  const chosen: Chosen | null = !value ? null : way === "ids" ? { ids, reason, include_citing } : { [way]: value, ids: address.all("also"), reason, include_citing };
  const choose = (to: Way) => address.set({ way: to, ids: null, subject: null, source: null, also: null });
  return (
    <Page title="Erase" lede="for good: nothing brings it back" json="/memory/commits?kind=erase">
      <div class="two plan">
        <div class="card pad stack">
          <form class="stack" onSubmit={(event) => event.preventDefault()}>
            <fieldset class="choices">
              <legend>What is to go</legend>
              {Object.entries(WAYS).map(([name, title]) => (
                <label key={name}><input type="radio" name="way" checked={way === name} onChange={() => choose(name as Way)} />{title}</label>
              ))}
            </fieldset>
            <label class="field">
              <span>{way === "ids" ? "Ids, with blanks between" : way === "subject" ? "Subject, such as ana" : "Source, such as web, or a reference in evidence"}</span>
              <Typed value={value} onSet={(text) => address.set({ [way]: text, way: null, also: null })} />
            </label>
            <label class="field">
              <span>Why; the certificate says it</span>
              <select value={reason} onChange={(event) => address.set({ reason: event.currentTarget.value })}>
                {Object.entries(REASONS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
              </select>
            </label>
            <label class="line"><input type="checkbox" checked={include_citing} onChange={(event) => address.set({ citing: event.currentTarget.checked ? "1" : null })} />Also erase memories that derive from it or cite it</label>
          </form>
          {chosen ? <Plan key={JSON.stringify(chosen)} chosen={chosen} onMore={(id) => address.set(way === "ids" ? { ids: [...ids, id].join(" ") } : { also: [...address.all("also"), id] })} /> : (
            <Empty title="Name what is to go">Then comes the plan: what would be destroyed and what would stay. Nothing is changed before you type its confirmation. To take something out of use and keep it, contain or forget it instead.</Empty>
          )}
        </div>
        <Certificates />
      </div>
    </Page>
  );
}

function Plan({ chosen, onMore }: { chosen: Chosen; onMore: (id: string) => void }) {
  const [done, setDone] = useState<Schemas["Destroyed"] | null>(null);
  // What is gone has no plan any more.
  const plan = useLoad<Schemas["ErasePlan"]>(done ? "" : `erase ${JSON.stringify(chosen)}`, () => ask(api.POST("/memory/erase/plan", { body: chosen as unknown as Schemas["PlanEraseRequest"] })));
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  if (done) return <Done done={done} />;
  const words = plan.data ? `erase ${plan.data.targets.length}` : "";
  const run = async () => {
    if (!plan.data || typed.trim() !== words || busy) return;
    setBusy(true);
    const answer = (await ask(api.POST("/memory/erase", { body: { ...chosen, digest: plan.data.digest } as unknown as Schemas["EraseRequest"] }))) as Answer<Schemas["Destroyed"]>;
    setBusy(false);
    if (!answer.ok) {
      setProblem(answer.problem);
      plan.reload();
      return;
    }
    setDone(answer.data);
    changed();
    say(`Erased ${counted(answer.data.plan.targets.length, "memory", "memories")}.`);
  };
  return (
    <Shown of={plan}>
      {(data) =>
        data.targets.length === 0 ? <Empty title="There is nothing of it left to erase" /> : (
          <form class="stack" onSubmit={(event) => { event.preventDefault(); void run(); }}>
            <h2>What goes</h2>
            <ol class="plain-list boxed" aria-label="What goes">
              {data.targets.slice(0, 200).map((each) => <li key={each.id}><Words id={each.id} text={each.text} /> <span class="faint small">{counted(each.versions, "version")} · {seen(each.why)}</span></li>)}
              {data.targets.length > 200 ? <li class="soft">and {(data.targets.length - 200).toLocaleString()} more</li> : null}
            </ol>
            <p class="soft">
              With them go {counted(data.versions.length, "version")} in the journal, their words, vectors and marks{data.blobs.length ? `, ${counted(data.blobs.length, "file")}` : ""}
              {data.artefacts.length ? `, ${counted(data.artefacts.length, "kept text")} of contexts and learned weights` : ""}.
              {" "}{counted(data.receipts.length, "receipt")} and {counted(data.proposals.length, "proposal")} are written anew without them.
            </p>
            <h2>What stays</h2>
            {data.candidates.length === 0 ? <p class="soft">Nothing that was made from it, cites it or quotes it.</p> : (
              <>
                <p class="soft">Other memories were made from it, cite it or quote it. They say something of their own, so they stay unless you name them too.</p>
                <ol class="plain-list boxed" aria-label="What stays">
                  {data.candidates.map((each) => (
                    <li key={each.id} class="line"><Words id={each.id} text={each.text} /> <span class="faint small">{seen(each.why)}</span><span class="spread" /><Button small onClick={() => onMore(each.id)}>Erase it too</Button></li>
                  ))}
                </ol>
              </>
            )}
            <p class="soft">So do ids, times, names of who wrote them, and how many versions there were: the chain has to hold. Copies made elsewhere are out of reach.</p>
            {mayChange() ? (
              <>
                <label class="field">
                  <span>Type <b>{words}</b> to confirm</span>
                  <input value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
                </label>
                <div><Button type="submit" tone="no" busy={busy} disabled={typed.trim() !== words}>Erase for good</Button></div>
              </>
            ) : null}
            {problem ? <Failed problem={problem} /> : null}
          </form>
        )
      }
    </Shown>
  );
}

function Words({ id, text }: { id: string; text: string }) {
  return (
    <>
      <MemoryText one text={text} />{" "}
      <a class="mono small" href={`${BASE}/memories/${id}`}>{id.slice(0, 8)}</a>
    </>
  );
}

function Done({ done }: { done: Schemas["Destroyed"] }) {
  return (
    <div class="stack" role="status">
      <h2 class="good">Erased</h2>
      <p>{counted(done.plan.targets.length, "memory", "memories")} {done.plan.targets.length === 1 ? "is" : "are"} gone. The certificate says what was destroyed, what proves it, and what it cannot promise.</p>
      <div class="line"><Download commit={done.commit} /><a href={`${BASE}/commits?at=${done.commit}`}>The commit</a></div>
      <p class="soft small">What it said is refused when somebody says it again in the same words.</p>
    </div>
  );
}

function Download({ commit }: { commit: string }) {
  return <a class="btn sm" href={`/memory/certificates/${commit}`} download={`erasure-${commit}.json`}>Download the certificate</a>;
}

function Certificates() {
  const found = useGet("/memory/commits", { params: { query: { kind: "erase", limit: 500 } } });
  return (
    <section class="card" aria-label="Certificates">
      <h2 class="pad">What was erased</h2>
      <Shown of={found}>
        {(data) =>
          data.items.length ? (
            <ol class="plain-list">
              {data.items.map((each) => (
                <li key={each.id} class="cert">
                  <span>{counted(each.changes.length, "memory", "memories")}, since {(REASONS as Record<string, string>)[each.reason] ?? seen(each.reason)}</span>
                  <span class="soft small">{seen(each.actor)} · <Time at={each.at} /></span>
                  <Download commit={each.id} />
                </li>
              ))}
            </ol>
          ) : (
            <Empty title="Nothing was erased so far">Each erasure leaves a certificate here, without any of what was erased.</Empty>
          )
        }
      </Shown>
    </section>
  );
}
