/** Commits in the list: one a line, and those of one act together. */

import type { ComponentChildren } from "preact";
import { BASE, type Address } from "../../address";
import type { Schemas } from "../../api";
import { Listed } from "../../listed";
import { Tag, type Tone } from "../../parts/Tag";
import { Time } from "../../parts/Time";
import { seen } from "../../parts/seen";
import { OPS } from "../review/labels";
import type { Group } from "./undone";

type Commit = Schemas["CommitView"];

export const TONES: Record<string, Tone> = { approve: "good", rollback: "warn", contain: "warn", erase: "bad" };

/** Commits of one act, or that only keep the books, as one line. */
export function Folded({
  group,
  cut,
  open,
  children,
}: {
  group: Group;
  /** Whether there may be more of it on another page. */
  cut: boolean;
  open: boolean;
  children: ComponentChildren;
}) {
  const { what, items } = group;
  const all = new Listed(items, cut ? undefined : items.length);
  const [newest] = items;
  const span = `${items.at(-1)?.commit.seq} to ${newest?.commit.seq}`;
  return (
    <li>
      <details open={open || undefined}>
        <summary class={what === "uses" ? "soft small" : ""}>
          {what === "uses" ? (
            `${all.named("commit")} that only counted uses, ${span}`
          ) : (
            <>
              {all.named("approval")} at once by {seen(newest?.details.approved_by ?? newest?.details.actor ?? "")},{" "}
              <span class="soft small">
                commits {span}, <Time at={newest?.commit.at} short />
              </span>
            </>
          )}
        </summary>
        <ol class="journal">{children}</ol>
      </details>
    </li>
  );
}

export function Row({
  item,
  title,
  reason,
  undone,
  on,
  address,
}: {
  item: Commit;
  title: string;
  reason: string;
  undone: Commit | undefined;
  on: boolean;
  address: Address;
}) {
  const { commit, details, steps } = item;
  const ops = [...new Set(steps.map((each) => OPS[each.op] ?? each.op))].slice(0, 3).join(", ");
  const many = steps.length > 1 ? ` × ${steps.length.toLocaleString()}` : "";
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    address.set({ at: commit.seq }, { push: !address.get("at") });
  };
  return (
    <li>
      <a href={`${BASE}/commits?at=${commit.seq}`} aria-current={on || undefined} onClick={open}>
        <span class="seq">{commit.seq}</span>
        <span class={undone ? "cut undone" : "cut"} dir="auto">
          {seen(title)}
        </span>
        <span class="soft small">
          <Time at={commit.at} short />
        </span>
        <span class="sub small soft">
          <Tag tone={TONES[commit.kind] ?? "plain"}>{commit.kind}</Tag>
          {undone ? <Tag tone="warn">{`undone by ${undone.commit.seq}`}</Tag> : null}
          <span class="cut">
            {seen(details.actor)}
            {details.approved_by && details.approved_by !== details.actor ? (
              <> · approved by {seen(details.approved_by)}</>
            ) : null}
            {reason && reason !== title ? <> · {seen(reason)}</> : null}
          </span>
          <span class="spread" />
          <span class="wide-only">
            {ops}
            {many}
          </span>
        </span>
      </a>
    </li>
  );
}
