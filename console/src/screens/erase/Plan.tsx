/** The plan of an erasure: what goes, what stays and why, the typed confirmation, and what was done. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Answer, type Problem, type Schemas } from "../../api";
import { commits, notifyChanged } from "../../events";
import { useLoad } from "../../load";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { MemoryText } from "../../parts/MemoryText";
import { Empty, Failed, Shown } from "../../parts/States";
import { say } from "../../parts/Toasts";
import { seen } from "../../parts/seen";
import { Download } from "./Certificates";
import type { Chosen } from "./selection";

export function Plan({ chosen, onMore }: { chosen: Chosen; onMore: (id: string) => void }) {
  const [done, setDone] = useState<Schemas["Destroyed"] | null>(null);
  const [busy, setBusy] = useState(false);
  // What is gone has no plan any more; the news of the erasure can come before its answer.
  const plan = useLoad<Schemas["ErasePlan"]>(
    done ? "" : `erase ${JSON.stringify(chosen)}`,
    () => ask(api.POST("/memory/erase/plan", { body: chosen })),
    busy ? null : commits,
  );
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  if (done) return <Done done={done} />;
  const words = plan.data ? `erase ${plan.data.targets.length}` : "";
  const run = async () => {
    if (!plan.data || typed.trim() !== words || busy) return;
    setBusy(true);
    const answer = (await ask(
      api.POST("/memory/erase", {
        body: { ...chosen, digest: plan.data.digest },
      }),
    )) as Answer<Schemas["Destroyed"]>;
    setBusy(false);
    if (!answer.ok) {
      setProblem(answer.problem);
      plan.reload();
      return;
    }
    setDone(answer.data);
    notifyChanged();
    say(`Erased ${counted(answer.data.plan.targets.length, "memory", "memories")}.`);
  };
  return (
    <Shown of={plan}>
      {(data) =>
        data.targets.length === 0 ? (
          <Empty title="There is nothing of it left to erase" />
        ) : (
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <h2>What goes</h2>
            <ol class="plain-list boxed" aria-label="What goes">
              {data.targets.slice(0, 200).map((each) => (
                <li key={each.id}>
                  <Words id={each.id} text={each.text} />{" "}
                  <span class="faint small">
                    {counted(each.versions, "version")} · {seen(each.why)}
                  </span>
                </li>
              ))}
              {data.targets.length > 200 ? (
                <li class="soft">and {(data.targets.length - 200).toLocaleString()} more</li>
              ) : null}
            </ol>
            <p class="soft">
              With them go {counted(data.versions.length, "version")} in the journal, their words, vectors and marks
              {data.blobs.length ? `, ${counted(data.blobs.length, "file")}` : ""}
              {data.artefacts.length
                ? `, ${counted(data.artefacts.length, "kept text")} of contexts and learned weights`
                : ""}
              . {counted(data.receipts.length, "receipt")} and {counted(data.proposals.length, "proposal")} are written
              anew without them.
            </p>
            <h2>What stays</h2>
            {data.candidates.length === 0 ? (
              <p class="soft">Nothing else was made from it, cites it or quotes it.</p>
            ) : (
              <>
                <p class="soft">
                  Other memories were made from it, cite it or quote it. They say something of their own, so they stay
                  unless you name them too.
                </p>
                <ol class="plain-list boxed" aria-label="What stays">
                  {data.candidates.map((each) => (
                    <li key={each.id} class="line">
                      <Words id={each.id} text={each.text} /> <span class="faint small">{seen(each.why)}</span>
                      <span class="spread" />
                      <Button small onClick={() => onMore(each.id)}>
                        Erase it too
                      </Button>
                    </li>
                  ))}
                </ol>
              </>
            )}
            <p class="soft">
              What always stays: ids, times, names of who wrote them, and how many versions there were. The chain of
              commits has to hold. Copies made elsewhere are out of reach.
            </p>
            {mayChange() ? (
              <>
                <label class="field">
                  <span>
                    Type <b>{words}</b> to confirm
                  </span>
                  <input
                    value={typed}
                    autocomplete="off"
                    spellcheck={false}
                    onInput={(event) => setTyped(event.currentTarget.value)}
                  />
                </label>
                <div>
                  <Button type="submit" tone="no" busy={busy} disabled={typed.trim() !== words}>
                    Erase for good
                  </Button>
                </div>
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
      <Link class="mono small" href={`/memories/${id}`}>
        {id.slice(0, 8)}
      </Link>
    </>
  );
}

function Done({ done }: { done: Schemas["Destroyed"] }) {
  return (
    <div class="stack" role="status">
      <h2 class="good">Erased</h2>
      <p>
        {counted(done.plan.targets.length, "memory", "memories")} {done.plan.targets.length === 1 ? "is" : "are"} gone.
        The certificate says what was destroyed, what proves it, and what it cannot promise.
      </p>
      <div class="line">
        <Download commit={done.commit.id} />
        <Link href={`/commits?at=${done.commit.id}`}>The commit</Link>
      </div>
      <p class="soft small">What it said is refused when somebody says it again in the same words.</p>
    </div>
  );
}
