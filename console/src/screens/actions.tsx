/** What can be done with one memory: each action with its form, sent for the version that is on the screen. */

import { useState } from "preact/hooks";
import { type Answer, api, ask, commitOf, type Outcome, type Problem, type Schemas } from "../api";
import { notifyChanged } from "../events";
import { rollBack } from "../undo";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Diff } from "../parts/Diff";
import { say } from "../parts/Toasts";
import { said } from "../parts/seen";

type Item = Schemas["Record"];
type Written = Outcome;
type Values = Record<string, string>;

interface Field {
  name: string;
  title: string;
  kind: "text" | "long" | "number" | "switch" | readonly string[];
  of?: (item: Item) => string;
  must?: boolean;
}

export interface MemoryAction {
  name: string;
  title: string;
  /** What the action does, in one sentence. */
  does: string;
  /** The message after the action. */
  done: string;
  key?: string;
  fits: (item: Item) => boolean;
  fields: readonly Field[];
  send: (item: Item, values: Values, tag: string) => Promise<Answer<Written>>;
}

const WHY: Field = { name: "reason", title: "Reason (recorded in the journal)", kind: "text", must: true };
const TEXT: Field = { name: "text", title: "Text", kind: "long", of: (item) => item.text, must: true };
const TIERS = ["core", "working", "episodic", "archival"] as const;
const SENSITIVITIES = ["normal", "sensitive"] as const;
/** Return the one of some names that a field has. */
const oneOf = <T extends string>(names: readonly T[], value: string | undefined) =>
  names.find((name) => name === value);

const holds = (item: Item) => item.status === "active";
const at = (item: Item, tag: string) => ({ path: { id: item.id }, header: { "If-Match": tag } });
const words = (text: string | undefined) =>
  (text ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
const orNull = (text: string | undefined) => text?.trim() || null;

/** The actions in the order of their buttons. */
export const MEMORY_ACTIONS: readonly MemoryAction[] = [
  {
    name: "revise",
    title: "Revise",
    does: "A new version is written; the one before stays in the journal.",
    done: "Revised.",
    key: "e",
    fits: holds,
    fields: [
      TEXT,
      { name: "tags", title: "Tags, with commas between", kind: "text", of: (item) => item.tags.join(", ") },
      { name: "subject", title: "Subject", kind: "text", of: (item) => item.subject ?? "" },
      { name: "category", title: "Category", kind: "text", of: (item) => item.category ?? "" },
      {
        name: "importance",
        title: "Importance, 0 to 1",
        kind: "number",
        of: (item) => String(item.base_importance ?? item.importance),
      },
      { name: "sensitivity", title: "Sensitivity", kind: SENSITIVITIES, of: (item) => item.sensitivity },
      { name: "consent", title: "Personal identifiers in it were given with consent", kind: "switch" },
      WHY,
    ],
    send: (item, values, tag) => {
      // What was left as it is, is not sent.
      const body: Schemas["ReviseRequest"] = { reason: values.reason };
      if (values.text !== item.text) body.text = values.text;
      if (values.tags !== item.tags.join(", ")) body.tags = words(values.tags);
      if (values.subject !== (item.subject ?? "")) body.subject = orNull(values.subject);
      if (values.category !== (item.category ?? "")) body.category = orNull(values.category);
      if (Number(values.importance) !== (item.base_importance ?? item.importance))
        body.importance = Number(values.importance);
      if (values.sensitivity !== item.sensitivity) body.sensitivity = oneOf(SENSITIVITIES, values.sensitivity);
      if (values.consent) body.consent = true;
      return ask(api.PATCH("/memory/items/{id}", { params: at(item, tag), body: body }));
    },
  },
  {
    name: "reinforce",
    title: "Confirm",
    does: "Its confidence begins to fade anew from now.",
    done: "Confirmed.",
    key: "y",
    fits: holds,
    fields: [{ ...WHY, of: () => "confirmed" }],
    send: (item, values) =>
      ask(
        api.POST("/memory/items/{id}/reinforce", {
          params: { path: { id: item.id } },
          body: { reason: values.reason ?? "", gain: 0 },
        }),
      ),
  },
  {
    name: "move",
    title: "Move",
    does: "It stands in another tier or scope, or under another key.",
    done: "Moved.",
    key: "m",
    fits: holds,
    fields: [
      { name: "tier", title: "Tier", kind: TIERS, of: (item) => item.tier },
      { name: "scope", title: "Scope", kind: "text", of: (item) => item.scope, must: true },
      { name: "key", title: "Key", kind: "text", of: (item) => item.key ?? "" },
      WHY,
    ],
    send: (item, values, tag) => {
      const body: Schemas["MoveRequest"] = { reason: values.reason };
      if (values.tier !== item.tier) body.tier = oneOf(TIERS, values.tier);
      if (values.scope !== item.scope) body.scope = values.scope;
      if (values.key !== (item.key ?? "")) body.key = orNull(values.key);
      return ask(api.POST("/memory/items/{id}/move", { params: at(item, tag), body: body }));
    },
  },
  {
    name: "promote",
    title: "Promote",
    does: "What it says becomes lasting knowledge, in the words that you give it.",
    done: "Promoted.",
    key: "p",
    fits: (item) => holds(item) && item.tier !== "core" && item.tier !== "archival",
    fields: [TEXT, WHY],
    send: (item, values) =>
      ask(
        api.POST("/memory/items/{id}/promote", {
          params: { path: { id: item.id } },
          body: { text: values.text ?? "", reason: values.reason ?? "" },
        }),
      ),
  },
  {
    name: "archive",
    title: "Archive",
    does: "It is true but not needed now: it stays stored, and no context contains it. Restoring brings it back.",
    done: "Archived.",
    fits: holds,
    fields: [WHY],
    send: (item, values, tag) =>
      ask(api.POST("/memory/items/{id}/archive", { params: at(item, tag), body: { reason: values.reason ?? "" } })),
  },
  {
    name: "restore",
    title: "Restore",
    does: "Agents see it again.",
    done: "Restored.",
    key: "r",
    fits: (item) => !holds(item) && item.status !== "erased",
    fields: [WHY],
    send: (item, values, tag) =>
      ask(api.POST("/memory/items/{id}/restore", { params: at(item, tag), body: { reason: values.reason ?? "" } })),
  },
  {
    name: "forget",
    title: "Forget",
    does: "It is no longer true or wanted: no agent sees it. Nothing is deleted; restoring brings it back.",
    done: "Forgotten.",
    key: "d",
    fits: holds,
    fields: [WHY],
    send: (item, values, tag) =>
      ask(
        api.DELETE("/memory/items/{id}", {
          params: { path: { id: item.id }, query: { reason: values.reason ?? "" }, header: { "If-Match": tag } },
        }),
      ),
  },
];

export function ActionDialog({
  action,
  item: newest,
  onClose,
}: {
  action: MemoryAction;
  item: Item;
  onClose: () => void;
}) {
  // As it was when this was opened: what somebody else writes meanwhile must not be written over.
  const [item] = useState(newest);
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(action.fields.map((each) => [each.name, each.of?.(item) ?? ""])),
  );
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const set = (name: string, value: string) => setValues((before) => ({ ...before, [name]: value }));
  const lacking = action.fields.some((each) => each.must && !values[each.name]?.trim());
  const run = async () => {
    if (busy || lacking) return;
    setBusy(true);
    const answer = await carriedOut(action, item, values);
    setBusy(false);
    if (!answer.ok) return setProblem(answer.problem);
    notifyChanged();
    onClose();
    const { outcome } = answer.data;
    const commit = commitOf(answer.data);
    if (outcome === "quarantined") return say("It waits for review.", { tone: "plain" });
    if (outcome === "duplicate") return say("The same is there already; nothing was changed.", { tone: "plain" });
    say(action.done, commit ? { undo: () => rollBack(commit) } : {});
  };
  return (
    <Dialog
      title={action.title}
      wide={action.fields.length > 3}
      onClose={onClose}
      onSubmit={() => void run()}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="go" type="submit" busy={busy} disabled={lacking}>
            {action.title}
          </Button>
        </>
      }
    >
      <p class="soft">{action.does}</p>
      {action.fields.map((each) => (
        <Input key={each.name} field={each} value={values[each.name] ?? ""} set={(value) => set(each.name, value)} />
      ))}
      {action.name === "revise" && values.text !== item.text ? <Diff before={item.text} after={values.text} /> : null}
      {problem ? (
        <p class="bad" role="alert">
          {said(problem.detail)}
        </p>
      ) : null}
    </Dialog>
  );
}

function Input({ field, value, set }: { field: Field; value: string; set: (value: string) => void }) {
  const { kind, title } = field;
  if (kind === "switch") {
    return (
      <label class="line">
        <input
          type="checkbox"
          checked={value !== ""}
          onChange={(event) => set(event.currentTarget.checked ? "1" : "")}
        />
        {title}
      </label>
    );
  }
  const onInput = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value);
  return (
    <label class="field">
      <span>{title}</span>
      {kind === "long" ? <textarea value={value} onInput={onInput} dir="auto" /> : null}
      {kind === "text" ? <input value={value} maxLength={1000} onInput={onInput} dir="auto" /> : null}
      {kind === "number" ? <input type="number" min={0} max={1} step={0.01} value={value} onInput={onInput} /> : null}
      {typeof kind === "object" ? (
        <select value={value} onChange={onInput}>
          {kind.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      ) : null}
    </label>
  );
}

/** Send an action for the version that is on the screen; where it is another by now, say so. */
async function carriedOut(action: MemoryAction, item: Item, values: Values): Promise<Answer<Written>> {
  const now = await ask(api.GET("/memory/items/{id}", { params: { path: { id: item.id } } }));
  if (!now.ok) return now;
  if (now.data.version !== item.version) return { ok: false, problem: MOVED };
  return action.send(item, values, now.etag ?? "*");
}

const MOVED: Problem = {
  status: 412,
  code: "stale_version",
  title: "It was changed in the meantime",
  detail: "Somebody changed this memory since you opened it. Close this, look at what it says now, and decide anew.",
};
