/** Two buttons that copy what is on the screen as a call: for a shell, and for a program. */

import { curl, python, type ApiCall } from "../snippets";
import { Copy } from "./Copy";

export function CallForms({ of }: { of: ApiCall }) {
  return (
    <>
      <Copy text={curl(of)}>Copy as curl</Copy>
      <Copy text={python(of)}>Copy as Python</Copy>
    </>
  );
}
