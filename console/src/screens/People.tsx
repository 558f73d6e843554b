/** Users and projects: what is kept for each, what is believed of it, where statements disagree, and how all of it goes. */

import "./sources.css";
import { useAddress } from "../address";
import { addressOf } from "../api";
import { useDebounced } from "../debounce";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { counted } from "../parts/Contain";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Who } from "../parts/Who";
import { said, seen, written } from "../parts/seen";
import { Export } from "./about/Export";
import { Erase, Everything } from "./About";

/** What is listed: its scope, what it is called, and what an empty list says. */
const SORTS = {
  users: {
    path: "/memory/users",
    title: "Users",
    lede: "whom agents talk with, and what is believed of each",
    none: "No user has memories of its own",
    how: "What an agent remembers for somebody it talks with is here. `keepward remember --user ana` writes the first one.",
    one: "user",
  },
  projects: {
    path: "/memory/projects",
    title: "Projects",
    lede: "places of work, and what is kept for each",
    none: "No project has memories of its own",
    how: "What agents remember for one project is here. `keepward remember --project shop` writes the first one.",
    one: "project",
  },
} as const;
type Sort = keyof typeof SORTS;
// So many are seen at once; among more there is a box to find one.
const FEW = 12;

export const Users = () => <People sort="users" />;
export const Projects = () => <People sort="projects" />;

function People({ sort }: { sort: Sort }) {
  const { path, title, lede, none, how, one } = SORTS[sort];
  const address = useAddress();
  const sought = useDebounced(address.get("find").trim());
  const found = useGet(path, { params: { query: sought ? { name: sought } : {} } });
  const items = found.data?.items ?? [];
  const named = address.get("name");
  // While a name is sought, the first that has it is shown.
  const chosen = named && !(sought && !items.some((each) => each.name === named)) ? named : (items[0]?.name ?? "");
  const here = items.findIndex((each) => each.name === chosen);
  const choose = (at: number) => {
    const member = items[Math.max(0, Math.min(items.length - 1, at))];
    if (member) address.set({ name: member.name });
  };
  useKeys(title, {
    j: { does: "Next", run: () => choose(here + 1) },
    k: { does: "The one before", run: () => choose(here - 1) },
  });
  return (
    <Page title={title} lede={lede} json={addressOf(path)}>
      {sought || items.length > FEW ? (
        <label class="field people-find">
          <span>Find a {one} by a part of its name</span>
          <input
            type="search"
            value={address.get("find")}
            autocomplete="off"
            spellcheck={false}
            dir="auto"
            onInput={(event) => address.set({ find: event.currentTarget.value, name: "" })}
          />
        </label>
      ) : null}
      <Shown of={found}>
        {(data) =>
          data.items.length ? (
            <div class="sources people opened">
              <section class="card" aria-label={title}>
                <ul class="plain-list">
                  {data.items.map((each, at) => (
                    <li key={each.name} class={each.name === chosen ? "source-row on" : "source-row"}>
                      <button type="button" aria-pressed={each.name === chosen} onClick={() => choose(at)}>
                        <b class="cut" dir="auto">
                          {seen(each.name)}
                        </b>
                        <span class="soft small">{counted(each.memories, "memory", "memories")}</span>
                      </button>
                    </li>
                  ))}
                </ul>
              </section>
              {chosen ? (
                <section class="stack source-detail" aria-label={`About ${written(chosen)}`}>
                  <div class="line">
                    <h2 class="cut" dir="auto">
                      <Who name={chosen} />
                    </h2>
                    <span class="spread" />
                    <Export name={chosen} />
                    <Erase name={chosen} />
                  </div>
                  <Everything key={chosen} name={chosen} />
                </section>
              ) : null}
            </div>
          ) : (
            <div class="card">
              {sought ? <Empty title={`No ${one} has such a name`} /> : <Empty title={none}>{said(how)}</Empty>}
            </div>
          )
        }
      </Shown>
    </Page>
  );
}
