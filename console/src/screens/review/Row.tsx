/** One proposal in the list of those that wait. */

import type { Problem } from "../../api";
import { Button } from "../../parts/Button";
import { MemoryText } from "../../parts/MemoryText";
import { Tag } from "../../parts/Tag";
import { seen } from "../../parts/seen";
import { tierWord } from "../../words";
import { codeName, gateName, headline, proposer, severityOf, summaryOf, type Proposal } from "./labels";

interface RowProps {
  item: Proposal | undefined;
  /** Why it is not there. */
  problem: Problem | undefined;
  onRetry: () => void;
  on: boolean;
  chosen: boolean;
  onOpen: (item: Proposal) => void;
  onToggle: (item: Proposal) => void;
}

export function Row({ item, problem, onRetry, on, chosen, onOpen, onToggle }: RowProps) {
  if (!item)
    return (
      <div class="row" role="option" aria-selected={false}>
        {problem ? (
          <span class="small warn">
            {seen(problem.title)}.{" "}
            <Button small onClick={onRetry}>
              Try again
            </Button>
          </span>
        ) : (
          <span class="bone" />
        )}
      </div>
    );
  const [reason] = item.reasons;
  return (
    <div
      id={`row-${item.id}`}
      class={["row", on && "on", chosen && "chosen-row"].filter(Boolean).join(" ")}
      role="option"
      aria-selected={on}
      onClick={(event) => (event.shiftKey || event.ctrlKey || event.metaKey ? onToggle(item) : onOpen(item))}
    >
      <span
        class="mark"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          onToggle(item);
        }}
      >
        {chosen ? "✓" : ""}
      </span>
      <div class="row-text">
        <MemoryText text={summaryOf(item) || headline(item)} one />
        <div class="row-sub small soft">
          <span class="cut">
            {seen(proposer(item))} · {tierWord(item.steps[0]?.after.tier ?? "")}
            {item.steps[0]?.after.key ? (
              <>
                {" "}
                <b>{seen(item.steps[0].after.key)}</b>
              </>
            ) : null}
          </span>
          {item.stale ? (
            <Tag tone="warn" title="its memory has changed since">
              outdated
            </Tag>
          ) : null}
          {item.state === "pending" ? null : <Tag>{item.state}</Tag>}
          {item.steps.length > 1 ? <Tag>{`${item.steps.length} changes`}</Tag> : null}
          {reason ? (
            <Tag tone={severityOf(reason)} title={`${codeName(reason.code)}: ${reason.detail}`}>
              {gateName(reason.gate)}
            </Tag>
          ) : null}
          {chosen ? <span class="unheard">, selected</span> : null}
        </div>
      </div>
    </div>
  );
}
