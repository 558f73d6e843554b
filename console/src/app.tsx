/** The console: navigation, the screen that the address names, and what stands around both. */

import "./app.css";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Link, Route, Router, Switch, useLocation } from "wouter-preact";
import { BASE, go } from "./address";
import { CommandMenu } from "./CommandMenu";
import { online } from "./api";
import { keysNow, useKeys, type Keys } from "./keys";
import { connected } from "./events";
import { useGet } from "./load";
import { screens, type Screen } from "./screens";
import { enter, enterWith, mayChange, session, signOut, type Session } from "./session";
import { status } from "./status";
import { Button } from "./parts/Button";
import { Copy } from "./parts/Copy";
import { Dialog } from "./parts/Dialog";
import { Page } from "./parts/Page";
import { Empty, Loading } from "./parts/States";
import { Toasts, undoLast } from "./parts/Toasts";
import { said, seen } from "./parts/seen";

export function App() {
  const now = session.value;
  if (now.state === "opening") return <Loading label="Opening the console" />;
  if (now.state === "unreachable" || (now.state === "closed" && !now.ended)) return <Gate session={now} />;
  return (
    <>
      {now.state === "closed" ? <Gate session={now} /> : null}
      <Kept away={now.state === "closed"}>
        <Router base={BASE}>
          <Console reading={now.state === "reading"} />
        </Router>
      </Kept>
    </>
  );
}

/** Keeps what is half written while a session has ended: out of the page, where nobody reads it. */
function Kept({ away, children }: { away: boolean; children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const shown = screen.current;
    if (!shown || shown.isConnected !== away) return;
    if (away) return shown.remove();
    place.current?.append(shown);
    // One that left the page is still open, and no longer over it.
    for (const dialog of shown.querySelectorAll<HTMLDialogElement>("dialog[open]")) {
      dialog.close();
      dialog.showModal();
    }
  }, [away]);
  return (
    <div ref={place}>
      <div ref={screen}>{children}</div>
    </div>
  );
}

function Console({ reading }: { reading: boolean }) {
  const [help, setHelp] = useState(false);
  const [menu, setMenu] = useState(false);
  const mine = visible();
  const jumps = mine.flatMap((each): [string, Keys[string]][] =>
    each.key ? [[`g ${each.key}`, { does: `Go to ${each.title}`, run: () => go(each.path) }]] : [],
  );
  useKeys("Everywhere", {
    "Ctrl k": { does: "Find or do: screens, commands, people, memories, commits", run: () => setMenu(true) },
    "?": { does: "Show the keys", run: () => setHelp(true) },
    u: { does: "Undo what was done last, for ten seconds", run: undoLast },
    ...Object.fromEntries(jumps),
  });
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Navigation onHelp={() => setHelp(true)} onMenu={() => setMenu(true)} />
      <main id="main" tabIndex={-1}>
        {online.value ? null : (
          <div class="banner" role="alert">
            <b>The server does not answer.</b>
            <span>
              Nothing was lost. What you see is as it was; this page goes on as soon as the server is back, and asks for
              a link if it was started anew.
            </span>
          </div>
        )}
        {reading ? (
          <div class="banner">
            Reads are open on this server: whoever reaches it sees this without a token. To decide, open the link.
          </div>
        ) : null}
        {status.value && !status.value.enabled ? (
          <div class="banner">Memory is switched off by policy: writes are refused and contexts are empty.</div>
        ) : null}
        <Switch>
          {mine.map((each) => (
            <Route key={each.path} path={each.path}>
              <each.component />
            </Route>
          ))}
          <Route>
            <Nothing />
          </Route>
        </Switch>
      </main>
      <Toasts />
      {menu ? <CommandMenu onClose={() => setMenu(false)} showKeys={() => setHelp(true)} /> : null}
      {help ? <Help onClose={() => setHelp(false)} /> : null}
    </div>
  );
}

/** What stands at an address without a screen for who looks. */
function Nothing() {
  const here = useLocation()[0];
  const hidden = screens.find((each) => each.owner && !mayChange() && each.path === here);
  return (
    <Page title={hidden ? hidden.title : "There is no such page"}>
      <Empty title={hidden ? "Only the owner sees this" : "There is nothing at this address"}>
        <Link href="/">Go home</Link>
      </Empty>
    </Page>
  );
}

/** The screens of who looks: some are for the owner alone. */
function visible(): readonly Screen[] {
  return screens.filter((each) => !each.owner || mayChange());
}

function Navigation({ onHelp, onMenu }: { onHelp: () => void; onMenu: () => void }) {
  const [open, setOpen] = useState(false);
  const [here] = useLocation();
  useEffect(() => setOpen(false), [here]);
  const groups = [1, 2, 3]
    .map((group) => visible().filter((each) => each.group === group && each.key))
    .filter((each) => each.length);
  const state = status.value;
  const who = session.value;
  const users = useGet("/memory/users").data?.items.length;
  const projects = useGet("/memory/projects").data?.items.length;
  const branches = useGet("/memory/branches").data?.items.total;
  return (
    <nav class={open ? "nav open" : "nav"} aria-label="Console">
      <div class="top">
        <Link href="/" class="brand" aria-label="Keepward, home">
          <Mark />
          Keepward
        </Link>
        <Button small class="toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
          Menu
        </Button>
      </div>
      <button type="button" class="find" onClick={onMenu}>
        Find or do… <kbd>Ctrl K</kbd>
      </button>
      {groups.map((group) => (
        <ul key={group[0]?.path}>
          {group.map((each) => (
            <li key={each.path}>
              <Link
                href={each.path}
                aria-current={isHere(each, here) ? "page" : undefined}
                onPointerEnter={() => void each.component.preload().catch(() => undefined)}
              >
                {each.title}
                <span class="count">
                  {each.count?.({ status: state, users, projects, branches })?.toLocaleString()}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      ))}
      <div class="foot">
        <span class={connected.value ? "good" : "warn"}>
          <span class="dot" />
          {connected.value ? "live" : "not connected"}
        </span>
        {state ? <span>tenant {seen(state.tenant)}</span> : null}
        {who.state === "open" ? <span>{seen(who.principal)}</span> : null}
        <button type="button" onClick={onHelp}>
          Keys
        </button>
        {who.state === "open" ? (
          <button type="button" onClick={() => void signOut()}>
            End session
          </button>
        ) : null}
      </div>
    </nav>
  );
}

function isHere(screen: Screen, here: string): boolean {
  return screen.path === "/" ? here === "/" : here === screen.path || here.startsWith(`${screen.path}/`);
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path
        d="M10 8v16M22 8l-9 8 9 8"
        fill="none"
        stroke="var(--accent-ink)"
        stroke-width="3.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      <div class="keys" tabIndex={-1} autofocus>
        {keysNow()
          .reverse()
          .map((group) => (
            <section key={group.title} class="stack">
              <h3>{group.title}</h3>
              <dl>
                {group.keys.map(([key, does]) => (
                  <>
                    <dt>
                      {key.split(" ").map((each) => (
                        <kbd key={each}>{each === "" ? "Space" : each}</kbd>
                      ))}
                    </dt>
                    <dd>{does}</dd>
                  </>
                ))}
              </dl>
            </section>
          ))}
      </div>
    </Dialog>
  );
}

/** The way in with a token: the owner's, from the file that `keepward serve` named, or one for reviewing. */
function TokenForm() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!token.trim() || busy) return;
    setBusy(true);
    const wrong = await enterWith(token.trim());
    setBusy(false);
    setProblem(wrong);
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="field">
        <span>Or enter with an owner's or reviewer's token</span>
        <input
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      {problem ? (
        <p class="bad" role="alert">
          {seen(problem)}
        </p>
      ) : null}
      <div>
        <Button type="submit" busy={busy} disabled={!token.trim()}>
          Enter
        </Button>
      </div>
    </form>
  );
}

function Gate({ session: now }: { session: Extract<Session, { state: "closed" | "unreachable" }> }) {
  const port = location.port && location.port !== "8321" ? ` --port ${location.port}` : "";
  const command = `keepward open${port}`;
  useEffect(() => {
    document.title = "Keepward";
  }, []);
  if (now.state === "unreachable") {
    return (
      <main class="gate card">
        <h1>The server does not answer</h1>
        <p>
          Start it with <code>keepward serve</code> and open the link that it prints.
        </p>
        <div>
          <Button onClick={() => void enter()}>Try again</Button>
        </div>
      </main>
    );
  }
  return (
    <main class="gate card">
      <h1 tabIndex={-1}>The console needs its link</h1>
      {now.why ? (
        <p class="bad" role="alert">
          {said(now.why.detail)}
        </p>
      ) : null}
      <p>
        Open the link that <code>keepward serve</code> printed. It works once, within ten minutes, and opens a session
        of twelve hours.
      </p>
      {now.ended ? (
        <p>
          This page goes on with that session, too: open the link in another tab and come back. What you wrote here
          waits.
        </p>
      ) : null}
      <p class="soft">
        For another one, run this where the server runs; a store that is not your own is named by <code>--db</code>:
      </p>
      <pre>{command}</pre>
      <div>
        <Copy text={command}>Copy the command</Copy>
      </div>
      <TokenForm />
    </main>
  );
}
