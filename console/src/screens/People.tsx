/** Users and projects: what is kept for each, what is believed of it, where statements disagree, and how all of it goes. */

import "./sources.css";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { addressOf, type Schemas } from "../api";
import { listOf } from "../browse";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
import { counted } from "../parts/Contain";
import { Facts } from "../parts/Facts";
import { MemoryText } from "../parts/MemoryText";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Time } from "../parts/Time";
import { Who } from "../parts/Who";
import { seen } from "../parts/seen";

/** What is listed: its scope, what it is called, and what an empty list says. */
const SORTS = {
  users: {
    path: "/memory/users",
    title: "Users",
    lede: "whom agents talk with, and what is believed of each",
    none: "No user has memories of its own",
    how: "What an agent keeps for somebody it talks with stands under that user.",
  },
  projects: {
    path: "/memory/projects",
    title: "Projects",
    lede: "places of work, and what is kept for each",
    none: "No project has memories of its own",
    how: "What is kept for one place of work stands under that project.",
  },
} as const;
type Sort = keyof typeof SORTS;

// Memories that are shown of each sort; the link beside them has all.
const SHOWN = 20;

export const Users = () => <People sort="users" />;
export const Projects = () => <People sort="projects" />;

function People({ sort }: { sort: Sort }) {
  const { path, title, lede, none, how } = SORTS[sort];
  const address = useAddress();
  const found = useGet(path);
  const items = found.data?.items ?? [];
  const chosen = address.get("name") || items[0]?.name || "";
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
      <Shown of={found}>
        {(data) =>
          data.items.length ? (
            <div class="sources opened">
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
              {chosen ? <One key={chosen} sort={sort} name={chosen} /> : null}
            </div>
          ) : (
            <div class="card">
              <Empty title={none}>{how}</Empty>
            </div>
          )
        }
      </Shown>
    </Page>
  );
}

function One({ sort, name }: { sort: Sort; name: string }) {
  const within = `/${sort}/${name}`;
  const shown = { limit: SHOWN, sort: "created", below: true } as const;
  const kept = useGet("/memory/items", { params: { query: { ...shown, within } as never } });
  const about = useGet(sort === "users" ? "/memory/items" : null, {
    params: { query: { ...shown, subject: name } as never },
  });
  const disputed = useGet(sort === "users" ? "/memory/contradictions" : null, {
    params: { query: { subject: name, limit: SHOWN } },
  });
  return (
    <section class="card pad stack source-detail" aria-label={`About ${name}`}>
      <div class="line">
        <h2 class="cut" dir="auto">
          {seen(name)}
        </h2>
        <span class="spread" />
        {mayChange() && sort === "users" ? (
          <Link class="btn sm no" href={`/erase?${new URLSearchParams({ subject: name })}`}>
            Erase for good…
          </Link>
        ) : null}
      </div>
      {sort === "users" ? <Listed title="What is believed" found={about} all={listOf({ subject: name })} /> : null}
      {disputed.data?.items.length ? (
        <>
          <h3>Statements that disagree</h3>
          <ul class="plain-list boxed" aria-label="Statements that disagree" tabIndex={0}>
            {disputed.data.items.map((each) => (
              <li key={each.older.id + each.newer.id} class="disagreeing">
                <Statement memory={each.older} />
                <Statement memory={each.newer} />
              </li>
            ))}
          </ul>
        </>
      ) : null}
      <Listed title="What is kept for it" found={kept} all={listOf({ within })} />
    </section>
  );
}

function Statement({ memory }: { memory: Schemas["Memory"] }) {
  return (
    <div class="stack impact-memory">
      <Link href={`/memories/${memory.id}`} class="memory-link">
        <MemoryText text={memory.text} limit={300} />
      </Link>
      <span class="line small soft">
        <Who name={memory.author} /> <Time at={memory.created_at} />
      </span>
    </div>
  );
}

interface Found {
  items: Schemas["Memory"][];
  total?: number | null;
}

function Listed({
  title,
  found,
  all,
}: {
  title: string;
  found: Parameters<typeof Shown<Found>>[0]["of"];
  all: string;
}) {
  return (
    <>
      <div class="line">
        <h3>{title}</h3>
        <span class="spread" />
        <Link class="small" href={all}>
          All of it{found.data?.total ? ` (${found.data.total.toLocaleString()})` : ""}
        </Link>
      </div>
      <Shown of={found}>
        {(data) =>
          data.items.length ? (
            <ul class="plain-list boxed" aria-label={title} tabIndex={0}>
              {data.items.map((each) => (
                <li key={each.id} class="stack impact-memory">
                  <Link href={`/memories/${each.id}`} class="memory-link">
                    <MemoryText text={each.text} limit={300} />
                  </Link>
                  <span class="line small soft">
                    <Facts each={each} />
                    <Who name={each.author} /> <Time at={each.created_at} />
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="soft small">Nothing.</p>
          )
        }
      </Shown>
    </>
  );
}
