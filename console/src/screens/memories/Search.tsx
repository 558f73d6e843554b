/** The one box of a search: it looks as one types, by words and by meaning. */

import { useEffect, useRef } from "preact/hooks";
import type { Address } from "../../address";
import { useKeys } from "../../keys";
import { Button } from "../../parts/Button";

// Milliseconds without a letter after which it looks.
const PAUSE_MS = 250;

export function Search({ address }: { address: Address }) {
  const field = useRef<HTMLInputElement>(null);
  const due = useRef<ReturnType<typeof setTimeout>>();
  const asked = address.get("q");
  // What the address says, unless somebody is writing.
  useEffect(() => {
    if (field.current && field.current !== document.activeElement) field.current.value = asked;
  }, [asked]);
  useEffect(() => () => clearTimeout(due.current), []);
  useKeys("Memories", { "/": { does: "Search", run: () => field.current?.focus() } });
  const look = (push: boolean) => {
    clearTimeout(due.current);
    address.set({ q: field.current?.value.trim() ?? "" }, { push });
  };
  return (
    <form
      role="search"
      class="memories-search"
      onSubmit={(event) => {
        event.preventDefault();
        look(true);
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Search by words and meaning"
        placeholder="A name, words, or a question"
        defaultValue={asked}
        maxLength={20_000}
        onInput={() => {
          clearTimeout(due.current);
          due.current = setTimeout(() => look(false), PAUSE_MS);
        }}
      />
      <Button type="submit" hint="/">
        Search
      </Button>
      {asked ? (
        <Button
          tone="quiet"
          onClick={() => {
            if (field.current) field.current.value = "";
            look(true);
          }}
        >
          Browse all
        </Button>
      ) : null}
    </form>
  );
}
