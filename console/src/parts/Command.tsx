/** A command to be run where the store lies, with a button that copies it. */

import { onThisStore } from "../commands";
import { Copy } from "./Copy";
import { said } from "./seen";

export function Command({ does, text }: { does?: string; text: string }) {
  const whole = onThisStore(text);
  return (
    <div class="field">
      {does ? <span>{said(does)}</span> : null}
      <div class="command">
        <code>{whole}</code>
        <Copy text={whole} />
      </div>
    </div>
  );
}
