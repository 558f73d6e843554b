/** What there is of each sort, with how many: a click narrows the list to it, another takes that back. */

import "./facets.css";
import { useState } from "preact/hooks";
import type { Address } from "../address";
import type { Schemas } from "../api";
import { FACETS, type Facet } from "../browse";
import { whole, type Listed } from "../listed";
import type { Found } from "../load";
import { TIERS, TRUSTS, type Word } from "../words";
import { seen, written } from "./seen";

interface Props {
  found: Found<"/memory/facets">;
  address: Address;
}

// Facets whose values have words of their own.
const TERMS: Partial<Record<Facet["name"], Record<string, Word>>> = { tier: TIERS, trust: TRUSTS };
// Values that are shown before somebody asks for the rest.
const FEW = 7;

export function Facets({ found, address }: Props) {
  return (
    <div class="facets">
      {FACETS.map((each) => (
        <One key={each.name} facet={each} counts={found.facets[each.name] ?? whole([])} address={address} />
      ))}
    </div>
  );
}

function One({ facet, counts, address }: { facet: Facet; counts: Listed<Schemas["Count"]>; address: Address }) {
  const [all, setAll] = useState(false);
  const chosen = address.all(facet.name);
  const terms = TERMS[facet.name];
  if ((counts.total ?? 2) < 2 && !chosen.length && facet.name !== "tier") return null;
  const few = counts.first(FEW);
  const shown = all ? counts.shown : counts.shown.filter((each, at) => at < FEW || chosen.includes(each.value));
  const turn = (value: string) => {
    const one = "one" in facet;
    const rest = chosen.filter((each) => each !== value);
    address.set({ [facet.name]: chosen.includes(value) ? rest : one ? [value] : [...rest, value] }, { push: true });
  };
  return (
    <fieldset>
      <legend>{facet.title}</legend>
      {shown.map((each) => (
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
      {few.isWhole ? null : (
        <button type="button" class="more-text small" onClick={() => setAll(!all)}>
          {all ? "Fewer" : few.rest}
        </button>
      )}
      {all && !counts.isWhole ? <span class="faint small">and {counts.rest}</span> : null}
    </fieldset>
  );
}
