/** A link to a commit, by its number; `of` is a number, an id, or the name of a head. */

import { Link } from "wouter-preact";

export function CommitLink({ of, children }: { of: number | string; children?: string }) {
  const seq = String(of).split(":")[0] ?? "";
  return <Link href={`/commits?at=${seq}`}>{children ?? `commit ${seq}`}</Link>;
}
