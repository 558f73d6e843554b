/** A person, agent or job by name: a link to all that it wrote, and where that went. */

import { Link } from "wouter-preact";
import { seen } from "./seen";

export function Who({ name }: { name: string }) {
  return <Link href={`/sources?${new URLSearchParams({ name })}`}>{seen(name)}</Link>;
}
