/** Everything about a name as one file, with what is left out. */

import { useState } from "preact/hooks";
import { useGet } from "../../load";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { Dialog } from "../../parts/Dialog";
import { Shown } from "../../parts/States";
import { seen } from "../../parts/seen";

/** The way to hand over what there is of a name. */
export function Export({ name }: { name: string }) {
  const [open, setOpen] = useState(false);
  if (!name || !mayChange()) return null;
  return (
    <>
      <Button small onClick={() => setOpen(true)}>
        Export…
      </Button>
      {open ? <ExportDialog name={name} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

const BONDS: Record<string, string> = {
  about: "about it",
  own: "kept for it",
  said: "by it",
  mentions: "with its name in a text",
};

function ExportDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const found = useGet("/memory/subjects/{name}", { params: { path: { name } } }, null);
  const file = `${name.replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
  return (
    <Dialog
      title={`Export everything about ${name}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Close</Button>
          {found.data ? (
            <a class="btn go" href={found.url} download={file}>
              Download {file}
            </a>
          ) : null}
        </>
      }
    >
      <Shown of={found}>
        {({ memories, proposals, contexts, left_out }) => (
          <div class="stack">
            <p>
              {counted(memories.length, "memory", "memories")} with{" "}
              {counted(
                memories.reduce((sum, memory) => sum + memory.versions.length, 0),
                "version",
              )}
              , {counted(proposals.length, "proposal")}, and {counted(contexts.length, "context")} that held any of it.
            </p>
            <ul class="plain-list small soft" aria-label="What is in it">
              {Object.entries(BONDS).map(([bond, title]) => {
                const count = memories.filter((memory) => memory.bond === bond).length;
                return count ? <li key={bond}>{`${count.toLocaleString()} ${title}`}</li> : null;
              })}
            </ul>
            <h3>What is left out</h3>
            <ul class="small soft" aria-label="What is left out">
              {left_out.map((sentence) => (
                <li key={sentence}>{seen(sentence)}</li>
              ))}
            </ul>
          </div>
        )}
      </Shown>
    </Dialog>
  );
}
