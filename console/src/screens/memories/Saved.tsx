/** Filters and searches that were saved under a name, in this browser, for this store. */

import { useState } from "preact/hooks";
import { Link, useSearch } from "wouter-preact";
import { status } from "../../status";
import { Button } from "../../parts/Button";
import { seen, written } from "../../parts/seen";

type Filters = Record<string, string>;
// Most that are kept of one store.
const MOST = 50;

/** Return under which name this store's filters are kept. */
function placeOfStore(): string {
  const { path, tenant } = status.value ?? {};
  return `keepward-filters ${path ?? location.origin} ${tenant ?? ""}`;
}

/** Return the saved filters by name; each is what stands behind `?` in the address. */
export function savedFilters(): Filters {
  try {
    return JSON.parse(localStorage.getItem(placeOfStore()) ?? "{}") as Filters;
  } catch {
    return {};
  }
}

function keep(filters: Filters): void {
  try {
    localStorage.setItem(placeOfStore(), JSON.stringify(filters));
  } catch {
    // A browser that keeps nothing has none after a reload.
  }
}

export function Saved() {
  useSearch();
  const search = location.search.slice(1);
  const [, redraw] = useState(0);
  const filters = savedFilters();
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState("");
  const names = Object.keys(filters);
  const put = (next: Filters) => {
    keep(next);
    redraw((turn) => turn + 1);
  };
  const save = () => {
    if (!name.trim()) return;
    put({ ...filters, [name.trim()]: search });
    setName("");
    setNaming(false);
  };
  const remove = (gone: string) => put(Object.fromEntries(Object.entries(filters).filter(([each]) => each !== gone)));
  // Which store it is, its status says.
  if (!status.value || (!names.length && !search)) return null;
  return (
    <section class="stack saved-filters" aria-label="Saved filters">
      {names.length ? (
        <ul class="plain-list">
          {names.map((each) => (
            <li key={each} class="line">
              <Link href={`/memories?${filters[each]}`} aria-current={filters[each] === search ? "true" : undefined}>
                {seen(each)}
              </Link>
              <span class="spread" />
              <Button
                small
                tone="quiet"
                aria-label={`Delete the saved filter ${written(each)}`}
                onClick={() => remove(each)}
              >
                Delete
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      {naming ? (
        <form
          class="stack tight"
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <label class="field">
            <span>Name of these filters</span>
            <input
              autofocus
              value={name}
              maxLength={60}
              onInput={(event) => setName(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Escape") setNaming(false);
              }}
            />
          </label>
          <div>
            <Button small type="submit" disabled={!name.trim()}>
              Save
            </Button>
          </div>
        </form>
      ) : search && names.length < MOST ? (
        <div>
          <Button small tone="quiet" onClick={() => setNaming(true)}>
            Save these filters…
          </Button>
        </div>
      ) : null}
    </section>
  );
}
