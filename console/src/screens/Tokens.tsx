/** Tokens: who may come in, how far, and when they last did. */

import "./tending.css";
import { useState } from "preact/hooks";
import { api, ask, type Problem, type Schemas } from "../api";
import { useKeys } from "../keys";
import { useGet } from "../load";
import { mayChange } from "../session";
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

type Token = Schemas["TokenState"];
type Rights = Schemas["CreateTokenRequest"]["rights"];
type Can = NonNullable<Schemas["CreateTokenRequest"]["can"]>;

const STATES: Record<string, Tone> = { valid: "good", expired: "warn", revoked: "bad" };
/** What each class can do by itself, and what it can be given beside that. */
const CLASSES: Record<"agent" | "reviewer" | "owner", { does: string; can: Can; more: Can }> = {
  agent: { does: "reads and proposes; what needs a person waits", can: ["read", "propose"], more: ["sensitive", "consent"] },
  reviewer: { does: "reads, approves and rejects; writes nothing", can: ["read", "approve"], more: ["sensitive"] },
  owner: { does: "does everything, as you do", can: ["read", "propose", "approve", "erase", "admin", "sensitive", "consent"], more: [] },
};
const MEANS: Record<string, string> = { read: "read", propose: "propose", approve: "approve and reject", sensitive: "read what is sensitive", consent: "say that a person consented" };

export function Tokens() {
  const found = useGet("/memory/tokens");
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<Token | null>(null);
  const [all, setAll] = useState(false);
  useKeys("Tokens", { n: mayChange() ? { does: "Make a token", run: () => setMaking(true) } : null });
  const columns: Column<Token>[] = [
    {
      title: "Bearer",
      cell: (each) => (
        <>
          <b class="token-name" dir="auto">{seen(each.name)}</b>
          <br />
          <span class="soft small">{each.rights} at <span class="mono">{seen(each.scope)}</span></span>
        </>
      ),
    },
    { title: "May", wide: true, cell: (each) => <span class="soft">{each.can.join(", ")}</span> },
    { title: "Holds", cell: (each) => <><Tag tone={STATES[each.state] ?? "plain"}>{each.state}</Tag>{each.state === "valid" && each.expires_at ? <span class="soft small"> ends <Time at={each.expires_at} short /></span> : null}</> },
    { title: "Last used", wide: true, cell: (each) => (each.used_at ? <Time at={each.used_at} short /> : <span class="faint" title="since this server was started">not yet</span>) },
    { title: "Made", wide: true, cell: (each) => <Time at={each.created_at} /> },
    { title: "End it", num: true, cell: (each) => (each.state === "valid" && mayChange() ? <Button small tone="no" onClick={() => setEnding(each)} aria-label={`Revoke… ${each.name}`}>Revoke…</Button> : null) },
  ];
  return (
    <Page
      title="Tokens"
      lede="who may come in, and how far"
      json={found.url}
      actions={mayChange() ? <Button small tone="go" hint="n" onClick={() => setMaking(true)}>Make a token</Button> : null}
    >
      <div class="card">
        <Shown of={found} rows={4}>
          {(data) => {
            const shown = all ? data.items : data.items.filter((each) => each.state === "valid");
            const ended = data.items.length - data.items.filter((each) => each.state === "valid").length;
            return (
              <>
                {shown.length ? <Table label="Tokens" columns={columns} rows={shown} keyOf={(each) => each.id} /> : (
                  <Empty title="Nobody has a token">Make one for each agent, as narrow as it can be: what it does then stands under its name, and ends when you revoke it.</Empty>
                )}
                {ended ? <div class="pages"><Button small tone="quiet" onClick={() => setAll(!all)}>{all ? "Hide what has ended" : `Show ${ended} that ended`}</Button></div> : null}
              </>
            );
          }}
        </Shown>
      </div>
      {making ? <Make onClose={() => { setMaking(false); found.reload(); }} /> : null}
      {ending ? <End token={ending} onClose={() => { setEnding(null); found.reload(); }} /> : null}
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
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const { does, can: whole, more } = CLASSES[rights];
  const send = async () => {
    if (!name.trim() || busy || made) return;
    setBusy(true);
    const body = { name: name.trim(), rights: rights as Rights, can: rights === "owner" ? undefined : can, scope: scope.trim() || undefined, expires: expires || undefined };
    const done = await ask(api.POST("/memory/tokens", { body: body as Schemas["CreateTokenRequest"] }));
    setBusy(false);
    if (done.ok) setMade(done.data);
    else setProblem(done.problem);
  };
  if (made) {
    return (
      <Dialog title={`The token of ${made.token.name}`} onClose={onClose} holds="The token is shown this once." foot={<><Copy text={made.secret}>Copy the token</Copy><Button tone="go" onClick={onClose}>I have it</Button></>}>
        <p>It is shown now and never again. Give it to {seen(made.token.name)} alone, as <code>KEEPWARD_TOKEN</code> or in the header <code>Authorization: Bearer</code>.</p>
        <p class="secret" aria-label="The token">{made.secret}</p>
        <p class="soft small">It reaches {seen(made.token.scope)} and may {made.token.can.join(", ")}{made.token.expires_at ? <>, until <Time at={made.token.expires_at} /></> : null}.</p>
      </Dialog>
    );
  }
  const turn = (word: Can[number]) => setCan(can.includes(word) ? can.filter((each) => each !== word) : [...can, word]);
  return (
    <Dialog title="Make a token" onClose={onClose} onSubmit={() => void send()} foot={<><Button onClick={onClose}>Cancel</Button><Button type="submit" tone="go" busy={busy} disabled={!name.trim()}>Make it</Button></>}>
      <label class="field"><span>Bearer, as receipts name it</span><input autofocus value={name} maxLength={64} placeholder="claude" onInput={(event) => setName(event.currentTarget.value)} /></label>
      <fieldset class="choices">
        <legend>Class</legend>
        {(Object.keys(CLASSES) as (keyof typeof CLASSES)[]).map((each) => (
          <label key={each}><input type="radio" name="rights" checked={rights === each} onChange={() => { setRights(each); setCan(CLASSES[each].can); }} />{each}</label>
        ))}
      </fieldset>
      <p class="soft small">It {does}.</p>
      {rights === "owner" ? null : (
        <fieldset class="choices">
          <legend>It may</legend>
          {[...whole, ...more].map((each) => (
            <label key={each}><input type="checkbox" checked={can.includes(each)} disabled={each === "read"} onChange={() => turn(each)} />{MEANS[each] ?? each}</label>
          ))}
        </fieldset>
      )}
      <label class="field"><span>Scope: an agent's own place keeps it to that; empty is yours</span><input value={scope} placeholder="/agents/claude" onInput={(event) => setScope(event.currentTarget.value)} /></label>
      <label class="field">
        <span>It ends after</span>
        <select value={expires} onChange={(event) => setExpires(event.currentTarget.value)}>
          <option value="1d">a day</option><option value="30d">30 days</option><option value="90d">90 days</option><option value="365d">a year</option><option value="">never</option>
        </select>
      </label>
      {problem ? <p class="bad" role="alert">{seen(problem.detail)}</p> : null}
    </Dialog>
  );
}

function End({ token, onClose }: { token: Token; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    const done = await ask(api.DELETE("/memory/tokens/{id}", { params: { path: { id: token.id } } }));
    setBusy(false);
    say(done.ok ? `The token of ${token.name} holds no more.` : done.problem.detail, { tone: done.ok ? "good" : "bad" });
    onClose();
  };
  return (
    <Dialog title={`Revoke the token of ${token.name}`} onClose={onClose} onSubmit={() => void run()} foot={<><Button onClick={onClose}>Cancel</Button><Button type="submit" tone="no" busy={busy}>Revoke</Button></>}>
      <p>Whoever holds it is refused from now on, also by a copy of this store. What it wrote stays. This cannot be undone: make another one instead.</p>
    </Dialog>
  );
}
