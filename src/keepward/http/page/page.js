// The plain page: what waits for review, what the store holds, what was done last.
//
// Everything from the store is set as text, never as markup, and characters that no reader sees are written out.

const $ = (id) => document.getElementById(id);
const EVERY = 20_000;

let csrf = null;

// Characters without a sign of their own: controls, formats, surrogates, private and unassigned ones, odd separators
// and blanks, fillers and variation selectors.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;

function legible(text) {
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match[0] === "\n" || match[0] === "\t") continue;
    pieces.push(text.slice(at, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    pieces.push(make("span", { class: "mark", text: `⟦U+${code}⟧` }));
    at = match.index + match[0].length;
  }
  pieces.push(text.slice(at));
  return pieces;
}

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.class) node.className = options.class;
  if (options.text !== undefined) node.textContent = options.text;
  if (options.seen !== undefined) node.append(...legible(String(options.seen)));
  node.append(...children);
  return node;
}

async function call(method, path, { body, match } = {}) {
  const headers = {};
  if (csrf && method !== "GET") headers["Keepward-Csrf"] = csrf;
  if (match) headers["If-Match"] = match;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const told = answer.status === 204 ? null : await answer.json().catch(() => null);
  return { ok: answer.ok, status: answer.status, told };
}

function say(text, good = false) {
  $("banner").hidden = !text;
  $("banner").className = good ? "good" : "";
  $("banner").replaceChildren(...legible(text));
}

function why(answer) {
  return answer.told && answer.told.detail ? answer.told.detail : `The server answered ${answer.status}.`;
}

async function enter() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // The code works once, so it need not stay in the address and the history.
  if (location.hash) history.replaceState(null, "", location.pathname);
  const answer = code ? await call("POST", "/session", { body: { code } }) : await call("GET", "/session");
  if (!answer.ok && code) {
    const before = await call("GET", "/session");
    if (!before.ok) say(why(answer));
    return before.ok ? before.told : null;
  }
  return answer.ok ? answer.told : null;
}

function when(text) {
  return text ? new Date(text).toLocaleString() : "";
}

function shown(value) {
  return value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

function side(label, value) {
  return make("div", { class: `text ${label}`, seen: shown(value) });
}

function change(step) {
  const box = make("div", { class: "field" });
  const place = [step.after.tier, step.after.kind, step.after.key && `key ${step.after.key}`, step.after.scope];
  box.append(make("div", { class: "soft", seen: `${step.op}: ${place.filter(Boolean).join(", ")}` }));
  // What was said is what a reviewer reads first; the other fields keep their order.
  const fields = [...step.changed].sort((one, other) => (other.field === "text") - (one.field === "text"));
  for (const each of fields) {
    box.append(make("div", { class: "soft", text: each.field }));
    if (shown(each.before)) box.append(side("before", each.before));
    if (shown(each.after)) box.append(side("after", each.after));
  }
  return box;
}

function origin(step) {
  // An approval lends a person's word, so this is the trust that it would have then.
  const told = [`source ${step.after.source}`, `trust ${step.after.trust} once approved`];
  if (step.after.evidence.length) told.push(`evidence ${step.after.evidence.join(", ")}`);
  return told.join(", ");
}

function proposal(item) {
  const card = make("article", { class: "card" });
  const head = make("header", {}, make("h3", { seen: item.reason }), make("p", { class: "soft", seen: item.proposer }));
  head.append(make("p", { class: "soft", text: when(item.created_at) }));
  card.append(head);
  card.append(make("ul", {}, ...item.reasons.map((each) => make("li", { seen: `${each.gate}: ${each.detail}` }))));
  for (const step of item.diff) card.append(make("div", { class: "soft", seen: `from: ${origin(step)}` }), change(step));
  const whole = make("details", {}, make("summary", { class: "soft", text: `All that would be stored, digest ${item.digest}` }));
  for (const each of item.shown) whole.append(make("div", { class: "text", seen: each.payload }));
  card.append(whole);
  if (csrf) card.append(decision(item));
  return card;
}

function decision(item) {
  const form = make("form");
  const approve = make("button", { class: "approve", text: "Approve exactly this" });
  const reason = make("input");
  const reject = make("button", { class: "reject", text: "Reject" });
  approve.type = "button";
  reject.type = "submit";
  reason.placeholder = "Why it is rejected";
  reason.setAttribute("aria-label", "Why it is rejected");
  reason.required = true;
  reason.maxLength = 500;
  const path = `/memory/quarantine/${encodeURIComponent(item.id)}`;
  const decide = async (verb, options) => {
    approve.disabled = reject.disabled = true;
    const answer = await call("POST", `${path}/${verb}`, options);
    say(answer.ok ? (verb === "approve" ? "Approved and stored." : "Rejected; the proposer is told why.") : why(answer), answer.ok);
    reason.value = "";
    await draw();
  };
  approve.addEventListener("click", () => decide("approve", { match: `"${item.digest}"` }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    decide("reject", { body: { reason: reason.value } });
  });
  form.append(approve, reason, reject);
  return form;
}

function fact(name, value) {
  return make("div", {}, make("dt", { text: name }), make("dd", { seen: value }));
}

function drawStatus(status) {
  const facts = [fact("Live memories", status.live), fact("Waiting for review", status.quarantine.depth)];
  for (const [tier, count] of Object.entries(status.by_tier)) facts.push(fact(`Tier ${tier}`, count));
  for (const [name, block] of Object.entries(status.blocks)) {
    if (block.tokens) facts.push(fact(`Block ${name}`, `${block.tokens} of ${block.budget} tokens`));
  }
  facts.push(fact("Head", status.head), fact("Commits", status.commits), fact("Policy", status.policy));
  if (!status.enabled) say("Memory is switched off by policy: writes are refused and contexts are empty.");
  $("status").replaceChildren(...facts);
}

function drawCore(core) {
  const held = core.blocks.map((each) => each.memory).filter(Boolean);
  const cards = [...held, ...core.items].map((each) => {
    const card = make("article", { class: "card" }, make("h3", { seen: each.key || each.kind }));
    card.append(make("div", { class: "text", seen: each.text }));
    card.append(make("p", { class: "soft", seen: `version ${each.version}, ${each.scope}, source ${each.source}` }));
    return card;
  });
  $("core").replaceChildren(...(cards.length ? cards : [make("p", { class: "soft", text: "No core block yet." })]));
}

function drawCommits(commits) {
  const rows = commits.map((each) => {
    const what = each.changes.map((one) => `${one.op} ${one.tier}`).join(", ");
    return make(
      "tr",
      {},
      make("td", { text: each.seq }),
      make("td", { text: when(each.at) }),
      make("td", { seen: each.approved_by && each.approved_by !== each.actor ? `${each.actor}, approved by ${each.approved_by}` : each.actor }),
      make("td", { seen: `${each.kind}: ${what}` }),
      make("td", { seen: each.reason }),
    );
  });
  $("commits").replaceChildren(...rows);
}

async function draw() {
  const status = await call("GET", "/memory/status");
  if (!status.ok) {
    $("open").hidden = true;
    $("closed").hidden = status.status !== 401;
    if (status.status !== 401) say(why(status));
    return;
  }
  $("closed").hidden = true;
  $("open").hidden = false;
  drawStatus(status.told);
  const [core, queue, commits] = await Promise.all([
    call("GET", "/memory/core"),
    call("GET", "/memory/quarantine"),
    call("GET", "/memory/commits?limit=15"),
  ]);
  if (core.ok) drawCore(core.told);
  if (commits.ok) drawCommits(commits.told.items);
  const cards = queue.ok ? queue.told.items.map(proposal) : [make("p", { class: "soft", text: why(queue) })];
  $("queue").replaceChildren(...(cards.length ? cards : [make("p", { class: "soft", text: "Nothing waits." })]));
}

// A reason that is being written must not be drawn over.
function writing() {
  return [...document.querySelectorAll("#queue input")].some((each) => each.value || each === document.activeElement);
}

async function main() {
  $("here").textContent = location.origin;
  const session = await enter();
  if (session) {
    csrf = session.csrf;
    $("who").append(...legible(`as ${session.principal}`));
    $("refresh").hidden = $("leave").hidden = false;
  }
  $("refresh").addEventListener("click", () => draw());
  $("leave").addEventListener("click", async () => {
    await call("DELETE", "/session");
    location.reload();
  });
  await draw();
  if (!session && !$("open").hidden) say("Reads are open on this server: whoever reaches it sees this without a token.");
  setInterval(() => {
    if (session && !document.hidden && !writing()) draw();
  }, EVERY);
}

main();
