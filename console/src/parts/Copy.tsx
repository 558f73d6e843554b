/** A button that copies a text, and says that it did. */

import { useState } from "preact/hooks";
import { Button } from "./Button";

export function Copy({ text, children = "Copy", framed }: { text: string; children?: string; framed?: boolean }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <Button small tone={framed ? undefined : "quiet"} onClick={() => void copy()}>
      {done ? "Copied" : children}
    </Button>
  );
}
