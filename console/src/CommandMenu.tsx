/** The command menu: screens, commands, people, memories and commits by what they are called, with the keyboard alone. */

import "./parts/command-menu.css";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { go } from "./address";
import { api, ask } from "./api";
import { listOf } from "./browse";
import { notifyChanged } from "./events";
import { Listed } from "./listed";
import { useGet } from "./load";
import { screens } from "./screens";
import { savedFilters } from "./screens/memories/Saved";
import { mayChange, signOut } from "./session";
import { useDebounced } from "./debounce";
import { status } from "./status";
import { Dialog } from "./parts/Dialog";
import { MemoryText } from "./parts/MemoryText";
import { say, undoLast } from "./parts/Toasts";
import { aboutOf } from "./parts/Who";
import { seen } from "./parts/seen";

interface Entry {
  title: string;
  /** What it is, beside the title. */
  note?: string;
  /** What tells it from another of its title. */
  key?: string;
  run: () => unknown;
}

interface Group {
  title: string;
  entries: Entry[];
}

interface Offer {
  groups: Group[];
  /** Whether every name that the text may be has arrived. */
  settled: boolean;
}

// People and memories that are offered of each sort.
const OFFERED = 6;

async function verify(): Promise<void> {
  const found = await ask(api.POST("/memory/verify"));
  if (!found.ok) return say(found.problem.detail, { tone: "bad" });
  const { ok, faults } = found.data;
  notifyChanged();
  say(ok ? "Intact: nothing was changed from outside." : `${faults.length} faults: see Integrity.`, {
    tone: ok ? "good" : "bad",
  });
}

/** What can be done from everywhere; some of it by the owner alone. */
function commands(showKeys: () => void): Entry[] {
  const all: (Entry & { owner?: boolean })[] = [
    { title: "Undo what was done last", run: undoLast },
    { title: "Verify the store now", run: () => void verify(), owner: true },
    { title: "What changed this week", run: () => go("/commits?compare=yes") },
    { title: "Show ended memories", run: () => go(listOf({ ended: "1" })) },
    { title: "Retention: how long things are kept", run: () => go("/settings?q=retention"), owner: true },
    { title: "Make a branch", run: () => go("/branches?new=1"), owner: true },
    { title: "Make a token", run: () => go("/tokens?new=1"), owner: true },
    { title: "Erase somebody or something for good", run: () => go("/erase"), owner: true },
    { title: "Show the keys", run: showKeys },
    { title: "End session", run: () => void signOut() },
  ];
  return all.filter((command) => !command.owner || mayChange());
}

function useOffer(text: string, showKeys: () => void): Offer {
  const sought = useDebounced(text);
  const name = { params: { query: { name: sought } } };
  const ofUsers = useGet(sought ? "/memory/users" : null, name);
  const ofProjects = useGet(sought ? "/memory/projects" : null, name);
  const ofSources = useGet(sought ? "/memory/sources" : null, { params: { query: { below: true, name: sought } } });
  const ofSubjects = useGet(sought ? "/memory/facets" : null, {
    params: { query: { below: true, of: ["subject"], name: sought } },
  });
  const settled = sought === text && ![ofUsers, ofProjects, ofSources, ofSubjects].some((each) => each.loading);
  const users = ofUsers.data?.items ?? [];
  const projects = ofProjects.data?.items ?? [];
  const sources = ofSources.data;
  const subjects = ofSubjects.data?.facets["subject"];
  const memories = useGet(sought ? "/memory/items" : null, {
    params: { query: { below: true, text: sought, limit: OFFERED } },
  }).data?.items;
  const branches = useGet(sought ? "/memory/branches" : null).data?.items;
  const has = (title: string) => title.toLowerCase().includes(text.toLowerCase());
  const screen = (each: (typeof screens)[number]): Entry => ({
    title: each.title,
    note: each.key ? `g ${each.key}` : undefined,
    run: () => go(each.path),
  });
  const shown = screens.filter((each) => each.key && (!each.owner || mayChange()));
  const groups: Group[] = [
    { title: "Screens", entries: shown.map(screen).filter((entry) => has(entry.title)) },
    { title: "Commands", entries: commands(showKeys).filter((entry) => has(entry.title)) },
  ];
  const saved = Object.entries(savedFilters())
    .filter(([name]) => has(name))
    .map(([name, search]) => ({ title: name, note: "saved filter", run: () => go(`/memories?${search}`) }));
  if (saved.length) groups.unshift({ title: "Saved filters", entries: saved });
  if (!text) return { groups, settled };
  const people = new Map<string, string>();
  const add = (name: string, note: string) => {
    if (has(name) && !people.has(name)) people.set(name, note);
  };
  for (const user of users) add(user.name, "user");
  for (const project of projects) add(project.name, "project");
  for (const subject of subjects?.shown ?? []) add(subject.value, "subject");
  for (const actor of sources?.actors.shown ?? []) add(actor.name, "wrote memories");
  for (const source of [...(sources?.sources.shown ?? []), ...(sources?.references.shown ?? [])])
    add(source.name, "source");
  const isWhole = [subjects, sources?.actors, sources?.sources, sources?.references].every(
    (list) => list?.isWhole ?? true,
  );
  const isSought = ([title]: readonly [string, string]) => title.toLowerCase() === text.toLowerCase();
  const named = new Listed([...people], isWhole ? people.size : undefined)
    .sorted((one, other) => Number(isSought(other)) - Number(isSought(one)))
    .first(OFFERED);
  const seq = Number(/^(?:commit\s*|#)?(\d+)$/i.exec(text)?.[1] ?? 0);
  const commit = seq > 0 && seq <= Number(status.value?.head.split(":")[0] ?? 0);
  const offered = [
    {
      title: "Commits",
      entries: commit ? [{ title: `Commit ${seq}`, run: () => go(`/commits?at=${seq}`) }] : [],
    },
    {
      title: named.isWhole ? "People and sources" : `People and sources, ${named.rest}`,
      entries: named.shown.map(([name, note]) => ({
        title: name,
        note,
        key: `about ${name}`,
        run: () => go(aboutOf(name)),
      })),
    },
    {
      title: "Branches",
      entries: (branches?.shown ?? [])
        .filter((branch) => has(branch.name))
        .slice(0, OFFERED)
        .map(({ name }) => ({
          title: name,
          key: `branch ${name}`,
          run: () => go(`/branches?${new URLSearchParams({ name })}`),
        })),
    },
    ...groups,
    {
      title: "Memories",
      entries: [
        ...(memories?.shown ?? []).map((memory) => ({
          title: memory.text,
          key: memory.id,
          run: () => go(`/memories/${encodeURIComponent(memory.id)}`),
        })),
        { title: `Search memories for “${text}”`, run: () => go(listOf({ q: text })) },
      ],
    },
  ].filter((group) => group.entries.length);
  return { groups: offered, settled };
}

export function CommandMenu({ onClose, showKeys }: { onClose: () => void; showKeys: () => void }) {
  const [text, setText] = useState("");
  // The entry that arrows chose; what arrives later may stand before it. Empty is the first.
  const [chosen, choose] = useState("");
  // Whether Enter was pressed before every name had arrived.
  const [waiting, setWaiting] = useState(false);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const { groups, settled } = useOffer(text.trim(), showKeys);
  const entries = groups.flatMap((group) => group.entries);
  const keys = entries.map((entry) => entry.key ?? `${entry.title}, ${entry.note}`);
  const current = Math.max(0, keys.indexOf(chosen));
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current, text]);
  useEffect(() => {
    if (waiting && settled) run(entries[current]);
  });
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const step = (by: number) => choose(keys.at((current + by) % Math.max(1, keys.length)) ?? "");
  const enter = () => {
    // The first entry is not known until every name has arrived.
    if (chosen || settled) run(entries[current]);
    else setWaiting(true);
  };
  let place = -1;
  return (
    <Dialog title="Find or do" onClose={onClose} onSubmit={enter}>
      <input
        type="search"
        role="combobox"
        aria-label="Find a screen, command, person, memory or commit"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={entries.length ? `${id}-${current}` : undefined}
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={text}
        placeholder="A screen, a command, a name, words, or a commit's number"
        onInput={(event) => {
          setText(event.currentTarget.value);
          choose("");
          setWaiting(false);
        }}
        onKeyDown={(event) => {
          const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (!by) return;
          event.preventDefault();
          step(by);
        }}
      />
      <div ref={list} class="menu-list" role="listbox" id={`${id}-list`} aria-label="What is found">
        {groups.map((group) => (
          <div key={group.title} role="group" aria-label={group.title} class="menu-group">
            <span aria-hidden="true">{group.title}</span>
            {group.entries.map((entry) => {
              place += 1;
              const own = place;
              return (
                <div
                  key={own}
                  role="option"
                  id={`${id}-${own}`}
                  aria-selected={own === current}
                  class="menu-option"
                  onClick={() => run(entry)}
                >
                  <MemoryText one text={entry.title} />
                  {entry.note ? <span class="soft small">{seen(entry.note)}</span> : null}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {waiting ? (
        <p class="soft small" role="status">
          Looking for names…
        </p>
      ) : null}
    </Dialog>
  );
}
