/** Settings: each one in force, and where it comes from. Nothing is changed here. */

import "./maintenance.css";
import meanings from "setting-meanings";
import { useAddress } from "../address";
import type { Schemas } from "../api";
import { useGet } from "../load";
import { Command } from "../parts/Command";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { Table, type Column } from "../parts/Table";
import { Tag, type Tone } from "../parts/Tag";
import { said, seen } from "../parts/seen";
import { Retention, isRetention } from "./settings/Retention";

type Setting = Schemas["EffectiveSetting"];

const TONES: Record<string, Tone> = { default: "plain", file: "accent", environment: "accent", program: "accent" };
const ORIGINS: Record<string, string> = {
  default: "default",
  file: "file",
  environment: "environment",
  program: "command line",
};
const TITLES: Record<string, string> = { "": "Store and identity", policy: "Policy", server: "Server" };

export function Settings() {
  const address = useAddress();
  const found = useGet("/memory/settings");
  const own = address.get("own") !== "";
  const sought = address.get("q").toLowerCase();
  return (
    <Page title="Settings" lede="in force now, with their origin" json={found.url}>
      <Shown of={found} rows={8}>
        {(data) => {
          const shown = data.items.filter(
            (each) =>
              (!own || each.origin !== "default" || each.waiting) &&
              (each.name.includes(sought) ||
                (meanings[each.name] ?? "").toLowerCase().includes(sought) ||
                (isRetention(each) && "retention".includes(sought))),
          );
          const kept = shown.filter(isRetention);
          const tables = ["", "policy", "server"].map((table) => ({
            table,
            rows: shown.filter((each) => tableOf(each) === table && !isRetention(each)),
          }));
          return (
            <div class="stack settings">
              <File file={data.file ?? null} />
              <form class="bar" role="search" onSubmit={(event) => event.preventDefault()}>
                <label class="field long">
                  <span>Find a setting</span>
                  <input
                    type="search"
                    value={address.get("q")}
                    placeholder="a name or a word of its meaning"
                    onInput={(event) => address.set({ q: event.currentTarget.value })}
                  />
                </label>
                <label class="tick">
                  <input
                    type="checkbox"
                    checked={own}
                    onChange={(event) => address.set({ own: event.currentTarget.checked ? "yes" : null })}
                  />
                  Only what is not a default
                </label>
              </form>
              {shown.length ? null : (
                <div class="card">
                  <Empty title={own && !sought ? "Every setting has its default" : "There is no such setting"} />
                </div>
              )}
              {kept.length ? <Retention rows={kept} file={data.file?.path ?? null} /> : null}
              {tables
                .filter((each) => each.rows.length)
                .map(({ table, rows }) => (
                  <section key={table} class="card" aria-label={TITLES[table]}>
                    <h2 class="settings-title">{TITLES[table]}</h2>
                    <Folded rows={rows} label={TITLES[table] ?? table} open={sought !== ""} />
                  </section>
                ))}
            </div>
          );
        }}
      </Shown>
    </Page>
  );
}

/** What somebody has set comes first; what is at its default is folded away. */
function Folded({ rows, label, open }: { rows: readonly Setting[]; label: string; open: boolean }) {
  const set = rows.filter((each) => each.origin !== "default" || each.waiting);
  const usual = rows.filter((each) => !set.includes(each));
  return (
    <>
      {set.length ? <Table label={label} columns={COLUMNS} rows={set} keyOf={(each) => each.name} /> : null}
      {usual.length ? (
        <details open={open || undefined}>
          <summary class="pad soft">{usual.length} at the default</summary>
          <Table label={`${label}, at the default`} columns={COLUMNS} rows={usual} keyOf={(each) => each.name} />
        </details>
      ) : null}
    </>
  );
}

const COLUMNS: Column<Setting>[] = [
  {
    title: "Setting",
    cell: (each) => (
      <>
        <span class="mono">{each.name.slice(each.name.indexOf(".") + 1)}</span>
        {meanings[each.name] ? <span class="soft small setting-meaning">{said(meanings[each.name] ?? "")}</span> : null}
      </>
    ),
  },
  {
    title: "Value",
    cell: (each) => (
      <>
        <span class="mono setting-value">{seen(valued(each.value))}</span>
        {each.waiting ? (
          <span class="warn small">the file says {seen(each.waiting)}, which applies after you accept it</span>
        ) : null}
      </>
    ),
  },
  {
    title: "Default",
    wide: true,
    cell: (each) =>
      valued(each.default) === valued(each.value) ? (
        <span class="faint">the same</span>
      ) : (
        <span class="mono soft setting-value">{seen(valued(each.default))}</span>
      ),
  },
  {
    title: "From",
    cell: (each) => (
      <Tag tone={each.waiting ? "warn" : (TONES[each.origin] ?? "plain")}>
        {each.waiting ? "waits" : (ORIGINS[each.origin] ?? each.origin)}
      </Tag>
    ),
  },
];

function tableOf(each: Setting): string {
  return each.name.includes(".") ? (each.name.split(".")[0] ?? "") : "";
}

/** Return a value as the file would write it, an entry a line. */
function valued(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.length ? value.map(valued).join(", ") : "none";
  if (typeof value === "object") {
    const entries = Object.entries(value);
    return entries.length ? entries.map(([name, each]) => `${name} = ${valued(each)}`).join("\n") : "none";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

function File({ file }: { file: Schemas["SettingsFile"] | null }) {
  if (!file)
    return (
      <p class="soft">
        There is no settings file: settings come from defaults, the environment and the command line. A file is named{" "}
        <code>keepward.toml</code> and is next to the store.
      </p>
    );
  const loosens = Object.entries(file.loosens);
  return (
    <section class="card pad stack" aria-label="The settings file">
      <div class="line">
        <h2>The settings file</h2>
        <Tag tone={file.accepted ? "good" : "warn"}>
          {file.accepted ? (file.named ? "named, so in force" : "in force") : "waits for acceptance"}
        </Tag>
        {file.changed ? <Tag tone="warn">changed since the server started</Tag> : null}
      </div>
      <p class="mono">{seen(file.path)}</p>
      {file.changed ? <p class="soft">The file as it is now applies after a restart.</p> : null}
      {loosens.length ? (
        <>
          <p class="soft">
            {file.accepted
              ? "It sets these:"
              : "It was found next to the store and not named, so it applies after you accept it:"}
          </p>
          <ul class="checks">
            {loosens.map(([name, value]) => (
              <li key={name}>
                <Tag tone={file.accepted ? "plain" : "warn"}>{file.accepted ? "in force" : "waits"}</Tag>
                <span class="mono">
                  {seen(name)} = {seen(value)}
                </span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {file.accept_with ? (
        <>
          <p class="soft">Read the file first. Then, on the server's machine:</p>
          <Command text={file.accept_with} />
        </>
      ) : null}
    </section>
  );
}
