/** Settings as `keepward.toml` writes them, and durations in words. */

const UNITS: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

/** Return a duration such as "30d" in words, "30 days"; other text as it is. */
export function spanWords(text: string): string {
  const found = /^(\d+)([smhdw])$/.exec(text);
  if (!found) return text;
  const [, count, unit = ""] = found;
  return `${Number(count).toLocaleString()} ${UNITS[unit]}${count === "1" ? "" : "s"}`;
}

/** Whether the file takes this text as a duration: a whole number and a unit, more than nothing. */
export function isSpan(text: string): boolean {
  return /^0*[1-9]\d*[smhdw]$/.test(text);
}

/** Return a value as TOML. */
export function tomlOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  if (typeof value === "object" && value) {
    const entries = Object.entries(value).map(([name, each]) => `${keyOf(name)} = ${tomlOf(each)}`);
    return `{ ${entries.join(", ")} }`;
  }
  return JSON.stringify(value);
}

function keyOf(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/** Return the lines of the file that give a setting, `table.name`, a value. */
export function linesOf(setting: string, value: unknown): string {
  const [table, name] = setting.includes(".") ? setting.split(".", 2) : ["", setting];
  return `${table ? `[${table}]\n` : ""}${name} = ${tomlOf(value)}`;
}
