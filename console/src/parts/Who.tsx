/** A person, agent, job or source by name: a link to the page about it. */

import { Link } from "wouter-preact";
import { seen } from "./seen";

/** Return the address of the page about a name, within the console. */
export function aboutOf(name: string): string {
  return `/about?${new URLSearchParams({ name })}`;
}

export function Who({ name }: { name: string }) {
  return <Link href={aboutOf(name)}>{seen(name)}</Link>;
}
