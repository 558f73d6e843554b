// The description of every call, drawn from /openapi.json. Text is set as text; nothing is read as markup.

const METHODS = ["get", "post", "put", "patch", "delete"];

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.class) node.className = options.class;
  if (options.text !== undefined) node.textContent = options.text;
  node.append(...children);
  return node;
}

// Name of a schema as a reader understands it: a type, a list of a type, one of several.
function named(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const several = schema.anyOf || schema.oneOf;
  if (several) return several.map(named).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(", ");
  if (schema.type === "array") return `list of ${named(schema.items)}`;
  return Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type || "anything";
}

function row(cells) {
  return make("tr", {}, ...cells.map((text) => make("td", { text: text || "" })));
}

function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { text })));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function fields(schema, schemas) {
  const whole = schema && schema.$ref ? schemas[named(schema)] : schema;
  const properties = (whole && whole.properties) || {};
  const required = new Set((whole && whole.required) || []);
  return Object.entries(properties).map(([name, each]) =>
    row([name, named(each), required.has(name) ? "required" : "", each.description]),
  );
}

function call(method, path, operation, { schemas, parameters }) {
  const card = make("details", { class: "card" });
  const title = make("summary", {}, make("code", { text: `${method.toUpperCase()} ${path}` }));
  title.append(` ${operation.summary || ""}`);
  card.append(title);
  if (operation.description) card.append(make("p", { class: "text", text: operation.description }));
  const asked = (operation.parameters || []).map((each) => (each.$ref ? parameters[named(each)] : each)).map((each) =>
    row([each.name, each.in, named(each.schema), each.required ? "required" : "", each.description]),
  );
  if (asked.length) card.append(make("h3", { text: "Parameters" }), table(["name", "in", "type", "", ""], asked));
  for (const [type, content] of Object.entries((operation.requestBody || {}).content || {})) {
    card.append(make("h3", { text: `Body: ${type}` }), table(["field", "type", "", ""], fields(content.schema, schemas)));
  }
  const answers = Object.entries(operation.responses || {}).map(([status, each]) => {
    const content = Object.values(each.content || {})[0];
    return row([status, content ? named(content.schema) : "", each.description]);
  });
  card.append(make("h3", { text: "Answers" }), table(["status", "body", ""], answers));
  return card;
}

async function main() {
  const answer = await fetch("/openapi.json");
  const described = await answer.json();
  if (!answer.ok) {
    const banner = document.getElementById("banner");
    banner.hidden = false;
    banner.textContent = described.detail;
    return;
  }
  const components = { schemas: {}, parameters: {}, ...described.components };
  const groups = new Map();
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const method of METHODS.filter((each) => methods[each])) {
      const group = (methods[method].tags || ["calls"])[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(call(method, path, methods[method], components));
    }
  }
  const calls = document.getElementById("calls");
  for (const [group, cards] of groups) calls.append(make("section", {}, make("h2", { text: group }), ...cards));
}

main();
