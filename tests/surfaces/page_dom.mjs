// Runs the page's script on a document that is only what the script needs, and prints what it made of the answers.
//
// usage: node page_dom.mjs PAGE_JS ANSWERS_JSON; the answers are {"GET /path": {"status", "body"}}, the output is
// {"texts": {id: text}, "buttons": [text], "calls": [{method, path, headers, body}], "markup": [names that were set]}

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [script, answers] = process.argv.slice(2);
const given = JSON.parse(readFileSync(answers, "utf8"));
const calls = [];
const markup = [];

class Element {
  constructor(tag) {
    this.tag = tag;
    this.children = [];
    this.hidden = false;
    this.value = "";
    this.listeners = {};
  }
  set textContent(text) {
    this.children = [String(text)];
  }
  get textContent() {
    return this.children.map((each) => (typeof each === "string" ? each : each.textContent)).join("");
  }
  append(...nodes) {
    this.children.push(...nodes.map((each) => (each instanceof Element ? each : String(each))));
  }
  replaceChildren(...nodes) {
    this.children = [];
    this.append(...nodes);
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  setAttribute(name) {
    if (/^(on|src|href|style)/.test(name)) markup.push(name);
  }
  all(tag) {
    const below = this.children.filter((each) => each instanceof Element);
    return below.flatMap((each) => [...(each.tag === tag ? [each] : []), ...each.all(tag)]);
  }
}
for (const name of ["innerHTML", "outerHTML", "insertAdjacentHTML"]) {
  Object.defineProperty(Element.prototype, name, { set: () => markup.push(name), get: () => () => markup.push(name) });
}

const byId = {};
globalThis.document = {
  hidden: false,
  activeElement: null,
  createElement: (tag) => new Element(tag),
  getElementById: (id) => (byId[id] ??= new Element("div")),
  querySelectorAll: () => [],
};
globalThis.location = { hash: "#code=once", pathname: "/", origin: "http://127.0.0.1:8321", reload: () => {} };
globalThis.history = { replaceState: () => (location.hash = "") };
globalThis.setInterval = () => 0;
globalThis.fetch = async (path, { method = "GET", headers = {}, body } = {}) => {
  calls.push({ method, path, headers, body });
  const { status, body: told } = given[`${method} ${path}`] ?? { status: 404, body: { detail: "nothing" } };
  return { ok: status < 400, status, json: async () => told };
};

const settled = () => new Promise((done) => setTimeout(done, 20));
await import(pathToFileURL(script));
await settled();
const texts = Object.fromEntries(Object.entries(byId).map(([id, node]) => [id, node.textContent]));
const buttons = byId.queue.all("button");
await buttons[0].listeners.click();
await settled();
console.log(JSON.stringify({ texts, hash: location.hash, buttons: buttons.map((each) => each.textContent), calls, markup }));
