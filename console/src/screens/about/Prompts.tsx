/** The prompts in which any of some memories stood. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask, type Answer, type Schemas } from "../../api";
import { useLoad } from "../../load";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { Shown } from "../../parts/States";
import { Time } from "../../parts/Time";
import { Who } from "../../parts/Who";

// Prompts that are listed, the newest ones.
const LISTED = 50;

type Delivery = Schemas["Delivery"];

/** Return the prompts that held any, newest first. */
async function promptsOf(ids: readonly string[]): Promise<Answer<Delivery[]>> {
  const found = new Map<string, Delivery>();
  const answers = await Promise.all(
    ids.map((memory) => ask(api.GET("/memory/impact", { params: { query: { memory } } }))),
  );
  for (const answer of answers) {
    if (!answer.ok) return answer;
    for (const context of answer.data.contexts) found.set(context.receipt, context);
  }
  const prompts = [...found.values()].sort((one, other) => other.at.localeCompare(one.at));
  return { ok: true, status: 200, etag: null, data: prompts };
}

export function Prompts({ ids }: { ids: readonly string[] }) {
  const [open, setOpen] = useState(false);
  const found = useLoad(open ? `prompts of ${ids.join(" ")}` : "", () => promptsOf(ids));
  if (!open)
    return (
      <div>
        <Button small onClick={() => setOpen(true)}>
          In which prompts did this stand?
        </Button>
      </div>
    );
  return (
    <Shown of={found}>
      {(prompts) =>
        prompts.length ? (
          <>
            <h3>
              {counted(prompts.length, "prompt")} held any of the {counted(ids.length, "memory", "memories")} above
            </h3>
            <ol class="plain-list boxed" aria-label="Prompts that held it" tabIndex={0}>
              {prompts.slice(0, LISTED).map((prompt) => (
                <li key={prompt.receipt} class="line small">
                  <Link href={`/context?receipt=${prompt.receipt}`}>
                    <Time at={prompt.at} />
                  </Link>
                  <span class="soft">
                    <Who name={prompt.actor} /> to {prompt.purpose}
                  </span>
                </li>
              ))}
              {prompts.length > LISTED ? (
                <li class="soft small">and {(prompts.length - LISTED).toLocaleString()} more</li>
              ) : null}
            </ol>
          </>
        ) : (
          <p class="soft small">No prompt held any of it.</p>
        )
      }
    </Shown>
  );
}
