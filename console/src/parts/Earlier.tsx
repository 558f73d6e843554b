/** What marks a hit that a newer one outdoes, and names that by its rank. */

import type { Schemas } from "../api";
import { Tag } from "./Tag";

export function Earlier({ hit, hits }: { hit: Schemas["Hit"]; hits: readonly Schemas["Hit"][] }) {
  if (!hit.outdone_by) return null;
  const newer = hits.find((each) => each.id === hit.outdone_by);
  return <Tag tone="warn" title="A newer memory says otherwise">{newer ? `earlier, see hit ${newer.rank}` : "earlier"}</Tag>;
}
