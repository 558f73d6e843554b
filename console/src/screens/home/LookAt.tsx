/** What is wrong or worth a look, each with the button that mends it. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { notifyChanged } from "../../events";
import { mayChange } from "../../session";
import { Button } from "../../parts/Button";
import { Copy } from "../../parts/Copy";
import { Tag } from "../../parts/Tag";
import { say } from "../../parts/Toasts";
import { said } from "../../parts/seen";
import type { Warning } from "./warnings";

export function LookAt({ warnings }: { warnings: readonly Warning[] }) {
  return (
    <section class="card" aria-label="To look at">
      {warnings.map((each) => (
        <Look key={each.id} warning={each} />
      ))}
    </section>
  );
}

function Look({ warning }: { warning: Warning }) {
  const [busy, setBusy] = useState(false);
  const { act, to, command } = warning;
  const run = async () => {
    if (!act) return;
    setBusy(true);
    const done = await act.run();
    setBusy(false);
    if (done.ok) say(act.done);
    else say(done.problem.detail, { tone: "bad" });
    notifyChanged();
  };
  return (
    <div class="look">
      <Tag tone={warning.tone}>{warning.tone === "bad" ? "wrong" : "look"}</Tag>
      <div class="look-text">
        <p>{said(warning.text)}</p>
        <p class="soft small">{said(warning.help)}</p>
      </div>
      <div class="look-acts">
        {act && mayChange() ? (
          <Button small busy={busy} onClick={() => void run()}>
            {act.title}
          </Button>
        ) : null}
        {to ? (
          <Link href={to.path} class="btn sm">
            {to.title}
          </Link>
        ) : null}
        {command && !act ? (
          <Copy framed text={command}>
            Copy the command
          </Copy>
        ) : null}
      </div>
    </div>
  );
}
