/** One box for people, sources and words: what has such a name is offered, and memories that say it are ticked. */

import { useState } from "preact/hooks";
import { everywhere } from "../../browse";
import { useDebounced } from "../../debounce";
import { whole } from "../../listed";
import { useGet } from "../../load";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { MemoryText } from "../../parts/MemoryText";
import { say } from "../../parts/Toasts";
import { seen } from "../../parts/seen";
import { ALL, ID, isMeant, MOST, OFFERED, offersOf, selected, type Offer } from "./offers";
import type { Selection } from "./selection";

export function Finder({ begin, onChoose }: { begin: string; onChoose: (to: Selection) => void }) {
  const [text, setText] = useState(begin);
  // What a click turned away from what was offered.
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const sought = useDebounced(text.trim());
  const bare = sought.replace(/^(user|agent|operator):/, "");
  const given = sought.split(/[\s,]+/).filter(Boolean);
  const ids = given.length > 0 && given.every((each) => ID.test(each)) ? given : [];
  const seek = sought !== "" && !ids.length;
  const facets = useGet(seek ? "/memory/facets" : null, { params: { query: { ...ALL, of: ["subject"], name: bare } } });
  const sources = useGet(seek ? "/memory/sources" : null, { params: { query: { below: true, name: bare } } });
  const users = useGet(seek ? "/memory/users" : null, { params: { query: { name: bare } } });
  const projects = useGet(seek ? "/memory/projects" : null, { params: { query: { name: bare } } });
  const named = useGet(seek ? "/memory/items" : null, {
    params: { query: { ...ALL, text: bare, limit: MOST, include_sensitive: true } },
  });
  const spoken = useGet(seek ? "/memory/search" : null, {
    params: { query: { query: bare, limit: 100, include_sensitive: true, within: everywhere() } },
  });
  const answered = [facets, sources, users, projects, named].every((each) => each.data);
  const offers = offersOf(facets.data, sources.data, users.data?.items ?? [], projects.data?.items ?? [])
    .sorted((one, other) => Number(isMeant(other, sought)) - Number(isMeant(one, sought)))
    .first(OFFERED);
  const says = named.data?.items ?? whole([]);
  const known = new Set(says.shown.map((memory) => memory.id));
  const said = (spoken.data?.hits.shown ?? [])
    .map((hit) => hit.memory)
    .filter((memory) => memory.speaker?.toLowerCase() === bare.toLowerCase() && !known.has(memory.id));
  const memories = [...says.shown, ...said];
  // Texts of many memories take longer than names.
  const looking = seek && [named, spoken].some((each) => each.loading && !each.data);
  const turn = (id: string) => {
    const next = new Set(turned);
    if (!next.delete(id)) next.add(id);
    setTurned(next);
  };
  const isTicked = (offer: Offer) => isMeant(offer, sought) !== turned.has(offer.title);
  const chosen = offers.shown.filter(isTicked);
  const ticked = memories.filter((memory) => turned.has(memory.id)).map((memory) => memory.id);
  const plan = async () => {
    setBusy(true);
    const found = await selected(chosen, ticked);
    setBusy(false);
    if (!found.ok) return say(found.problem.detail, { tone: "bad" });
    onChoose(found.data);
  };
  return (
    <>
      <label class="field">
        <span>Who or what is to go: a name, a source, words of a memory, or ids</span>
        <input
          type="search"
          value={text}
          autocomplete="off"
          spellcheck={false}
          dir="auto"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setTurned(new Set());
          }}
        />
      </label>
      {ids.length ? (
        <div>
          <Button onClick={() => onChoose({ ids: ids.join(" ") })}>
            Plan for {counted(ids.length, "memory", "memories")}
          </Button>
        </div>
      ) : null}
      {seek && answered && !offers.shown[0] && !memories.length ? (
        <p class="soft" role="status">
          Nothing has that name, and no memory says it.
        </p>
      ) : null}
      {offers.shown[0] ? (
        <ul class="plain-list boxed" aria-label="People and sources">
          {offers.shown.map((offer) => (
            <li key={offer.title}>
              <label class="tick">
                <input type="checkbox" checked={isTicked(offer)} onChange={() => turn(offer.title)} />
                <span>{seen(offer.title)}</span>
                <span class="soft small">{counted(offer.count, "memory", "memories")}</span>
              </label>
            </li>
          ))}
          {offers.isWhole ? null : <li class="soft small">and {offers.rest}: write more of the name</li>}
        </ul>
      ) : null}
      {seek && memories.length ? (
        <>
          <p class="soft small">
            {says.plus(said).named("memory says", "memories say")} “{seen(bare)}”
            {said.length ? ", or were said by it" : ""}: tick those that are to go, too.
            {says.isWhole ? "" : ` ${counted(memories.length, "memory", "memories")} can be ticked here.`}
          </p>
          <ul class="plain-list boxed" aria-label="Memories that say it" tabIndex={0}>
            {memories.map((memory) => (
              <li key={memory.id}>
                <label class="tick">
                  <input type="checkbox" checked={turned.has(memory.id)} onChange={() => turn(memory.id)} />
                  <span>
                    <MemoryText text={memory.text} limit={300} />
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {looking && offers.shown[0] ? (
        <p class="soft" role="status">
          Still looking for memories that say it: wait before you plan.
        </p>
      ) : null}
      {chosen.length || ticked.length ? (
        <div>
          <Button busy={busy} onClick={() => void plan()}>
            Plan for what is ticked
          </Button>
        </div>
      ) : null}
    </>
  );
}
