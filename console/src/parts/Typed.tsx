/** A line that counts once it was typed: at Enter, or when the focus leaves it. What is being typed is never lost. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

interface Props extends Omit<JSX.HTMLAttributes<HTMLInputElement>, "value"> {
  value: string;
  placeholder?: string;
  onSet: (value: string) => void;
}

export function Typed({ value, onSet, ...rest }: Props) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      {...rest}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => onSet(event.currentTarget.value.trim())}
    />
  );
}
