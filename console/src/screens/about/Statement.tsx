/** One memory in a list about somebody: what it says, who said it, and the buttons to revise, forget or contain it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Schemas } from "../../api";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { ContainDialog } from "../../parts/Contain";
import { MemorySummary } from "../../parts/MemorySummary";
import { MemoryText } from "../../parts/MemoryText";
import { Said } from "../../parts/Said";
import { ActionDialog, MEMORY_ACTIONS } from "../actions";

const revise = MEMORY_ACTIONS.find((action) => action.name === "revise")!;
const forget = MEMORY_ACTIONS.find((action) => action.name === "forget")!;

interface Props {
  memory: Schemas["Record"];
  marks?: RegExp | null;
  /** Buttons of the place where it stands. */
  children?: ComponentChildren;
}

export function Statement({ memory, marks, children }: Props) {
  const [open, setOpen] = useState<"revise" | "forget" | "contain" | null>(null);
  const close = () => setOpen(null);
  return (
    <div class="stack tight">
      <Link href={`/memories/${encodeURIComponent(memory.id)}`} class="memory-link">
        <MemoryText text={memory.text} limit={300} marks={marks} />
      </Link>
      <span class="line small soft">
        <MemorySummary memory={memory} />
        <Said memory={memory} />
      </span>
      {mayChange() && memory.status === "active" ? (
        <span class="line about-acts">
          {children}
          <Button small tone="quiet" onClick={() => setOpen("revise")}>
            Revise
          </Button>
          <Button small tone="quiet" onClick={() => setOpen("contain")}>
            Take out of use
          </Button>
          <Button small tone="quiet" onClick={() => setOpen("forget")}>
            Forget
          </Button>
        </span>
      ) : null}
      {open === "contain" ? (
        <ContainDialog ways={[{ memory: memory.id }]} of="this memory" onClose={close} />
      ) : open ? (
        <ActionDialog action={open === "revise" ? revise : forget} item={memory} onClose={close} />
      ) : null}
    </div>
  );
}
