/** What was erased so far, each erasure with its certificate to read, print or check. */

import { useGet } from "../../load";
import { counted } from "../../parts/Contain";
import { Empty, Shown } from "../../parts/States";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";
import { seen } from "../../parts/seen";
import { REASONS } from "./selection";

export function Download({ commit }: { commit: string }) {
  return (
    <span class="line">
      <a class="btn sm" href={`/memory/certificates/${commit}?format=html`} download={`erasure-${commit}.html`}>
        Certificate to read and print
      </a>
      <a class="btn sm quiet" href={`/memory/certificates/${commit}`} download={`erasure-${commit}.json`}>
        as JSON
      </a>
    </span>
  );
}

export function Certificates() {
  const found = useGet("/memory/commits", { params: { query: { kind: "erase", limit: 500 } } });
  return (
    <section class="card" aria-label="Certificates">
      <h2 class="pad">What was erased</h2>
      <Shown of={found}>
        {(data) =>
          data.items.shown[0] ? (
            <ol class="plain-list">
              {data.items.shown.map((each) => (
                <li key={each.commit.id} class="cert">
                  <span>
                    {counted(each.steps.length, "memory", "memories")}, since{" "}
                    {(REASONS as Record<string, string>)[each.details.reason] ?? seen(each.details.reason)}
                  </span>
                  <span class="soft small">
                    <Who name={each.details.actor} /> · <Time at={each.commit.at} />
                  </span>
                  <Download commit={each.commit.id} />
                </li>
              ))}
              {data.items.isWhole ? null : <li class="pad soft small">and {data.items.rest}, in the commits</li>}
            </ol>
          ) : (
            <Empty title="Nothing was erased so far">
              Each erasure leaves a certificate here, without any of what was erased.
            </Empty>
          )
        }
      </Shown>
    </section>
  );
}
