/** The one box of a search: it looks as one types, by words and by meaning. */

import { useEffect, useRef } from "preact/hooks";
import type { Address } from "../../address";
import { useKeys } from "../../keys";
import { Button } from "../../parts/Button";
import { FOUND } from "./picked";

// Milliseconds without a letter after which it looks.
const PAUSE_MS = 250;

interface Props {
  address: Address;
  /** Id of the found row that keys act on. */
  current: string | undefined;
  /** Called at each letter, before anything is looked for. */
  onWrite: () => void;
}

export function Search({ address, current, onWrite }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const due = useRef<ReturnType<typeof setTimeout>>();
  const asked = address.get("q");
  // What the address says, unless somebody is writing, or wrote letters that it does not have yet.
  useEffect(() => {
    if (field.current && !due.current && field.current !== document.activeElement) field.current.value = asked;
  }, [asked]);
  useEffect(() => () => clearTimeout(due.current), []);
  const leave = ({ target }: KeyboardEvent) => (target === field.current ? field.current?.blur() : false);
  useKeys("Memories", {
    "/": { does: "Search", run: () => field.current?.focus() },
    Escape: { does: "Leave the search, with what it found", run: leave },
  });
  const look = (push: boolean) => {
    clearTimeout(due.current);
    due.current = undefined;
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
        role="combobox"
        aria-label="Search by words and meaning"
        aria-haspopup="grid"
        aria-expanded={asked !== ""}
        aria-controls={asked ? FOUND : undefined}
        aria-activedescendant={current}
        aria-autocomplete="list"
        autocomplete="off"
        placeholder="A name, words, or a question"
        defaultValue={asked}
        maxLength={20_000}
        onInput={() => {
          onWrite();
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
