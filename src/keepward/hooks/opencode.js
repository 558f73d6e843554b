// What Keepward remembers is put into prompts, and what the user tells is kept. `keepward connect opencode --hooks`
// wrote this file, and `--remove` takes it away again. It never breaks its host: where anything goes wrong, nothing is
// added.
import { spawn } from "node:child_process"

const COMMAND = ["keepward", "hook"]
const OPTIONS = []
const PATIENCE = 15_000

/** Return what is to be added at an event; the empty text where there is nothing, or anything went wrong. */
function asked(what, event) {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = [...COMMAND, what, "--client", "opencode", ...OPTIONS]
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], timeout: PATIENCE })
      const out = []
      child.on("error", () => resolve(""))
      child.on("close", (code) => resolve(code === 0 ? Buffer.concat(out).toString("utf8") : ""))
      child.stdout.on("data", (part) => out.push(part))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve("")
    }
  })
}

export const Keepward = async ({ client, directory }) => {
  const compacted = new Set()
  const known = new Map()

  /** Return whether a person talks in a session: what a model asks of its helpers is nobody's word. */
  async function isOfAPerson(id) {
    if (!known.has(id)) {
      const { data } = await client.session.get({ path: { id } })
      known.set(id, Boolean(data) && !data.parentID)
    }
    return known.get(id)
  }

  /** Return whether a session begins, or has lost what it was told. */
  async function begins(id) {
    if (compacted.delete(id)) return true
    if (known.has(id)) return false
    const { data } = await client.session.messages({ path: { id }, query: { limit: 1 } })
    return !data?.length
  }

  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      try {
        const said = parts.filter((part) => part.type === "text" && !part.synthetic)
        if (said.length === 0) return
        const isNew = await begins(sessionID)
        if (!(await isOfAPerson(sessionID))) return
        const event = { session_id: sessionID, cwd: directory, prompt: said.map((part) => part.text).join("\n") }
        const added = [isNew ? await asked("start", event) : "", await asked("prompt", event)]
        const { id } = parts.at(-1)
        added.filter(Boolean).forEach((text, number) => {
          parts.push({ id: `${id}${number}`, sessionID, messageID: message.id, type: "text", text, synthetic: true })
        })
      } catch {
        // The message goes on as it is.
      }
    },
    event: async ({ event }) => {
      try {
        if (event.type !== "session.idle") return
        const { sessionID } = event.properties
        if (!(await isOfAPerson(sessionID))) return
        const { data } = await client.session.messages({ path: { id: sessionID } })
        const last = data?.findLast(({ info }) => info.role === "assistant")
        const said = last?.parts.filter((part) => part.type === "text" && !part.synthetic) ?? []
        const text = said.map((part) => part.text).join("\n")
        if (text) await asked("reply", { session_id: sessionID, cwd: directory, last_assistant_message: text })
      } catch {
        // The next message takes its place.
      }
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await asked("compact", { session_id: sessionID, cwd: directory })
      compacted.add(sessionID)
    },
  }
}
