/** What there is of each sort, with how many: a click narrows the list to it, another takes that back. */

import "./facets.css";
import { useState } from "preact/hooks";
import type { Address } from "../address";
import type { Schemas } from "../api";
import { FACETS, type Facet, type Query } from "../browse";
import { useDebounced } from "../debounce";
import { Listed, whole } from "../listed";
import { useGet, type Found } from "../load";
import { TIERS, TRUSTS, type Word } from "../words";
import { seen, written } from "./seen";

interface Props {
  found: Found<"/memory/facets">;
  address: Address;
  /** The filters in force. */
  query: Query;
}

// Facets whose values have words of their own.
const TERMS: Partial<Record<Facet["name"], Record<string, Word>>> = { tier: TIERS, trust: TRUSTS };
// Values that are shown before somebody asks for the rest.
const FEW = 7;

export function Facets({ found, address, query }: Props) {
  return (
    <div class="facets">
      {FACETS.map((each) => (
        <One key={each.name} facet={each} counts={found.facets[each.name] ?? NONE} address={address} query={query} />
      ))}
    </div>
  );
}

const NONE: Listed<Schemas["Count"]> = whole([]);

interface OneProps {
  facet: Facet;
  counts: Listed<Schemas["Count"]>;
  address: Address;
  query: Query;
}

function One({ facet, counts, address, query }: OneProps) {
  const [all, setAll] = useState(false);
  const [part, setPart] = useState("");
  const name = useDebounced(part.trim());
  const named = useGet(name ? "/memory/facets" : null, { params: { query: { ...query, of: [facet.name], name } } });
  const chosen = address.all(facet.name);
  const terms = TERMS[facet.name];
  if ((counts.total ?? 2) < 2 && !chosen.length && facet.name !== "tier") return null;
  const found = name && named.data ? (named.data.facets[facet.name] ?? NONE) : counts;
  const listed = new Listed(
    all ? found.shown : counts.shown.filter((each, at) => at < FEW || chosen.includes(each.value)),
    all ? found.total : counts.total,
  );
  const turn = (value: string) => {
    const one = "one" in facet;
    const rest = chosen.filter((each) => each !== value);
    address.set({ [facet.name]: chosen.includes(value) ? rest : one ? [value] : [...rest, value] }, { push: true });
  };
  return (
    <fieldset>
      <legend>{facet.title}</legend>
      {all && !counts.isWhole ? (
        <input
          type="search"
          aria-label={`Find by name: ${facet.title}`}
          placeholder="A part of its name"
          value={part}
          onInput={(event) => setPart(event.currentTarget.value)}
        />
      ) : null}
      {listed.shown.map((each) => (
        <label key={each.value} class={chosen.includes(each.value) ? "on" : ""}>
          <input type="checkbox" checked={chosen.includes(each.value)} onChange={() => turn(each.value)} />
          <span class="cut" dir="auto" title={terms?.[each.value]?.means ?? written(each.value)}>
            {terms?.[each.value] ? (
              <>
                {terms[each.value]?.word} <span class="faint small">{each.value}</span>
              </>
            ) : (
              seen(each.value)
            )}
          </span>
          <span class="count">{each.count.toLocaleString()}</span>
        </label>
      ))}
      {all && !listed.isWhole ? <span class="faint small">and {listed.rest}</span> : null}
      {counts.first(FEW).isWhole ? null : (
        <button
          type="button"
          class="more-text small"
          onClick={() => {
            setAll(!all);
            setPart("");
          }}
        >
          {all ? "Fewer" : listed.rest}
        </button>
      )}
    </fieldset>
  );
}
