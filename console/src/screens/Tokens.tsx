/** Tokens: who may come in, how far, and when they last did. */

import "./maintenance.css";
import { useState } from "preact/hooks";
import { useAddress } from "../address";
import { api, ask, type Problem, type Schemas } from "../api";
import { useDebounced } from "../debounce";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
import { status } from "../status";
import { Button } from "../parts/Button";
import { Copy } from "../parts/Copy";
import { Dialog } from "../parts/Dialog";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Table, type Column } from "../parts/Table";
import { Tag, type Tone } from "../parts/Tag";
import { Time } from "../parts/Time";
import { say } from "../parts/Toasts";
import { seen } from "../parts/seen";
import { above, sightOf, type Counts } from "./tokens/sight";

type Token = Schemas["ShownToken"];
type Rights = Schemas["CreateTokenRequest"]["rights"];
type Can = NonNullable<Schemas["CreateTokenRequest"]["can"]>;

const STATES: Record<string, Tone> = { valid: "good", expired: "warn", revoked: "bad" };
/** What each class can do by itself, and what it can be given beside that. */
const CLASSES: Record<"agent" | "reviewer" | "owner", { does: string; can: Can; more: Can }> = {
  agent: {
    does: "reads and proposes; what needs a person waits",
    can: ["read", "propose"],
    more: ["sensitive", "consent", "share"],
  },
  reviewer: { does: "reads, approves and rejects; writes nothing", can: ["read", "approve"], more: ["sensitive"] },
  owner: {
    does: "does everything, as you do",
    can: ["read", "propose", "approve", "erase", "admin", "sensitive", "consent", "share"],
    more: [],
  },
};
const MEANS: Record<string, string> = {
  read: "read",
  propose: "propose",
  approve: "approve and reject",
  sensitive: "read what is sensitive",
  consent: "say that a person consented",
  share: "write above its scope",
};

export function Tokens() {
  const found = useGet("/memory/tokens");
  const address = useAddress();
  const making = address.get("new") === "1" && mayChange();
  const setMaking = (open: boolean) => address.set({ new: open ? "1" : null });
  const [ending, setEnding] = useState<Token | null>(null);
  const [all, setAll] = useState(false);
  useKeys("Tokens", { n: mayChange() ? { does: "Make a token", run: () => setMaking(true) } : null });
  const columns: Column<Token>[] = [
    {
      title: "Name",
      cell: (each) => (
        <>
          <b class="token-name" dir="auto">
            {seen(each.name)}
          </b>
          <br />
          <span class="soft small">
            {each.rights} at <span class="mono">{seen(each.scope)}</span>
          </span>
        </>
      ),
    },
    { title: "May", words: true, cell: (each) => <span class="soft">{each.can.join(", ")}</span> },
    {
      title: "Status",
      cell: (each) => (
        <>
          <Tag tone={STATES[each.state] ?? "plain"}>{each.state}</Tag>
          {each.state === "valid" && each.expires_at ? (
            <span class="soft small">
              {" "}
              ends <Time at={each.expires_at} short />
            </span>
          ) : null}
        </>
      ),
    },
    {
      title: "Last used",
      wide: true,
      cell: (each) =>
        each.used_at ? (
          <Time at={each.used_at} short />
        ) : (
          <span class="faint" title="since this server was started">
            not yet
          </span>
        ),
    },
    { title: "Made", wide: true, cell: (each) => <Time at={each.created_at} /> },
    {
      title: "Revoke",
      num: true,
      cell: (each) =>
        each.state === "valid" && mayChange() ? (
          <Button small tone="no" onClick={() => setEnding(each)} aria-label={`Revoke… ${each.name}`}>
            Revoke…
          </Button>
        ) : null,
    },
  ];
  return (
    <Page
      title="Tokens"
      lede="who may come in, and how far"
      json={found.url}
      actions={
        mayChange() ? (
          <Button small tone="go" hint="n" onClick={() => setMaking(true)}>
            Make a token
          </Button>
        ) : null
      }
    >
      <div class="card">
        <Shown of={found} rows={4}>
          {(data) => {
            const shown = all ? data.items : data.items.filter((each) => each.state === "valid");
            const ended = data.items.length - data.items.filter((each) => each.state === "valid").length;
            return (
              <>
                {shown.length ? (
                  <Table label="Tokens" columns={columns} rows={shown} keyOf={(each) => each.id} />
                ) : (
                  <Empty title="Nobody has a token">
                    Make one for each agent, as narrow as it can be: what it does then stands under its name, and ends
                    when you revoke it.
                  </Empty>
                )}
                {ended ? (
                  <div class="pages">
                    <Button small tone="quiet" onClick={() => setAll(!all)}>
                      {all ? "Hide what has ended" : `Show ${ended} that ended`}
                    </Button>
                  </div>
                ) : null}
              </>
            );
          }}
        </Shown>
      </div>
      {making ? (
        <Make
          onClose={() => {
            setMaking(false);
            found.reload();
          }}
        />
      ) : null}
      {ending ? (
        <End
          token={ending}
          onClose={() => {
            setEnding(null);
            found.reload();
          }}
        />
      ) : null}
    </Page>
  );
}

function Make({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [rights, setRights] = useState<keyof typeof CLASSES>("agent");
  const [can, setCan] = useState<Can>(CLASSES.agent.can);
  const [scope, setScope] = useState("");
  const [expires, setExpires] = useState("90d");
  const [made, setMade] = useState<Schemas["IssuedToken"] | null>(null);
  const facets = useGet(
    "/memory/facets",
    {
      params: {
        query: { below: true, of: ["scope"], most: 200, include_sensitive: can.includes("sensitive") },
      },
    },
    null,
  );
  const at = useDebounced(rights === "owner" ? "/" : scopeOf(scope, status.value?.scope ?? "/"));
  const kept = useGet("/memory/facets", { params: { query: { within: at, of: ["scope"], most: 1 } } }, null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const { does, can: whole, more } = CLASSES[rights];
  const known = facets.data?.facets["scope"]?.shown ?? [];
  const counts = useCounts(at, can.includes("sensitive"));
  const send = async () => {
    if (!name.trim() || busy || made) return;
    setBusy(true);
    const body = {
      name: name.trim(),
      rights: rights as Rights,
      can: rights === "owner" ? undefined : can,
      // An owner's token has no scope.
      scope: rights === "owner" ? "/" : scope.trim() || undefined,
      expires: expires || undefined,
    };
    const done = await ask(api.POST("/memory/tokens", { body: body }));
    setBusy(false);
    if (done.ok) setMade(done.data);
    else setProblem(done.problem);
  };
  if (made) {
    return (
      <Dialog
        title={`The token of ${made.token.name}`}
        onClose={onClose}
        holds="The token is shown this once."
        foot={
          <>
            <Copy text={made.secret}>Copy the token</Copy>
            <Button tone="go" onClick={onClose}>
              I have it
            </Button>
          </>
        }
      >
        <p>
          It is shown now and never again. Give it to {seen(made.token.name)} alone, as <code>KEEPWARD_TOKEN</code> or
          in the header <code>Authorization: Bearer</code>.
        </p>
        <p class="secret" aria-label="The token">
          {made.secret}
        </p>
        <Lines secret={made.secret} name={made.token.name} />
        <p class="soft small">
          {seen(sightOf({ rights, at: made.token.scope, sensitive: made.token.can.includes("sensitive") }, counts))} It
          may {made.token.can.join(", ")}
          {made.token.expires_at ? (
            <>
              , until <Time at={made.token.expires_at} />
            </>
          ) : null}
          .
        </p>
      </Dialog>
    );
  }
  const strange = at !== "/" && kept.data?.total === 0;
  const turn = (word: Can[number]) => setCan(can.includes(word) ? can.filter((each) => each !== word) : [...can, word]);
  return (
    <Dialog
      title="Make a token"
      onClose={onClose}
      onSubmit={() => void send()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="go" busy={busy} disabled={!name.trim()}>
            Make it
          </Button>
        </>
      }
    >
      <label class="field">
        <span>Name, as receipts give it</span>
        <input
          autofocus
          value={name}
          maxLength={64}
          placeholder="claude"
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <fieldset class="choices">
        <legend>Class</legend>
        {(Object.keys(CLASSES) as (keyof typeof CLASSES)[]).map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="rights"
              checked={rights === each}
              onChange={() => {
                setRights(each);
                setCan(CLASSES[each].can);
              }}
            />
            {each}
          </label>
        ))}
      </fieldset>
      <p class="soft small">It {does}.</p>
      {rights === "owner" ? null : (
        <fieldset class="choices">
          <legend>It may</legend>
          {[...whole, ...more].map((each) => (
            <label key={each}>
              <input
                type="checkbox"
                checked={can.includes(each)}
                disabled={each === "read"}
                onChange={() => turn(each)}
              />
              {MEANS[each] ?? each}
            </label>
          ))}
        </fieldset>
      )}
      {rights === "owner" ? null : (
        <label class="field">
          <span>Scope: what it may see; empty is what all share</span>
          <input
            value={scope}
            placeholder="/agents/claude"
            list="scopes"
            autocomplete="off"
            onInput={(event) => setScope(event.currentTarget.value)}
          />
        </label>
      )}
      <datalist id="scopes">
        {known.map((each) => (
          <option key={each.value} value={each.value}>{`${each.count} memories`}</option>
        ))}
      </datalist>
      <p class={strange ? "warn small" : "soft small"} role="status">
        {strange ? `Nothing is stored at ${at} so far: look whether that is what you mean. ` : ""}
        {sightOf({ rights, at, sensitive: can.includes("sensitive") }, counts)}
      </p>
      <label class="field">
        <span>It ends after</span>
        <select value={expires} onChange={(event) => setExpires(event.currentTarget.value)}>
          <option value="1d">a day</option>
          <option value="30d">30 days</option>
          <option value="90d">90 days</option>
          <option value="365d">a year</option>
          <option value="">never</option>
        </select>
      </label>
      {problem ? (
        <p class="bad" role="alert">
          {seen(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

/** Return how many memories are at a scope, above it and below it; null while that is not known. */
function useCounts(at: string, include_sensitive: boolean): Counts | null {
  const common = { of: ["scope" as const], most: 1, include_sensitive };
  const count = (query: object) => ({ params: { query: { ...common, ...query } } });
  const higher = above(at);
  const own = useGet("/memory/facets", count({ scope: [at], below: true }), null);
  const within = useGet("/memory/facets", count({ within: at }), null);
  const shared = useGet(higher.length ? "/memory/facets" : null, count({ scope: higher, below: true }), null);
  if (!own.data || !within.data || (higher.length && !shared.data)) return null;
  return { own: own.data.total, above: shared.data?.total ?? 0, below: within.data.total - own.data.total };
}

/** Return the path of a scope as it is written: `claude` is an agent's own. */
function scopeOf(text: string, own: string): string {
  const written = text.trim();
  return !written ? own : written.startsWith("/") ? written : `/agents/${written}`;
}

/** What each kind of client takes, with the token in it. */
function Lines({ secret, name }: { secret: string; name: string }) {
  const address = `${location.origin}/mcp`;
  const config = {
    mcpServers: { keepward: { type: "http", url: address, headers: { Authorization: `Bearer ${secret}` } } },
  };
  const clients: [string, string][] = [
    ["Claude Code", `claude mcp add --transport http keepward ${address} --header "Authorization: Bearer ${secret}"`],
    [
      "Codex: the variable, then the server",
      `export KEEPWARD_TOKEN=${secret}
codex mcp add keepward --url ${address} --bearer-token-env-var KEEPWARD_TOKEN`,
    ],
    ["Another MCP client, in its settings", JSON.stringify(config, null, 2)],
    [
      "Python",
      `from keepward import Client

with Client("${location.origin}", "${secret}") as memory:
    print(memory.context("What do I know?").text)`,
    ],
  ];
  return (
    <details>
      <summary>The lines to paste for {seen(name)}</summary>
      <div class="stack">
        {clients.map(([client, text]) => (
          <div key={client} class="field">
            <span>{client}</span>
            <div class="command">
              <code class="pasted">{text}</code>
              <Copy text={text} />
            </div>
          </div>
        ))}
      </div>
    </details>
  );
}

function End({ token, onClose }: { token: Token; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    const done = await ask(api.DELETE("/memory/tokens/{id}", { params: { path: { id: token.id } } }));
    setBusy(false);
    say(done.ok ? `The token of ${token.name} has ended.` : done.problem.detail, { tone: done.ok ? "good" : "bad" });
    onClose();
  };
  return (
    <Dialog
      title={`Revoke the token of ${token.name}`}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="no" busy={busy}>
            Revoke
          </Button>
        </>
      }
    >
      <p>
        Whoever holds it is refused from now on, also by a copy of this store. What it wrote stays. This cannot be
        undone: make another one instead.
      </p>
    </Dialog>
  );
}
