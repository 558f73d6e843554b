/** A button, or a link that looks like one. */

import "./button.css";
import type { ComponentChildren, JSX, Ref } from "preact";

export interface ButtonProps extends Omit<JSX.HTMLAttributes<HTMLButtonElement>, "disabled" | "ref" | "class"> {
  children?: ComponentChildren;
  /** `go` for the one thing that this place is for, `no` for what takes something away, `quiet` for the rest. */
  tone?: "go" | "no" | "quiet";
  small?: boolean;
  /** The key that does the same. */
  hint?: string;
  type?: "button" | "submit";
  disabled?: boolean;
  busy?: boolean;
  inner?: Ref<HTMLButtonElement>;
  form?: string;
  class?: string;
}

export function Button({
  tone,
  small,
  hint,
  children,
  busy,
  disabled,
  inner,
  class: own,
  type = "button",
  ...rest
}: ButtonProps) {
  const name = ["btn", tone, small && "sm", own].filter(Boolean).join(" ");
  return (
    <button {...rest} ref={inner} class={name} type={type} disabled={disabled || busy} aria-busy={busy || undefined}>
      {children}
      {hint ? <kbd aria-hidden="true">{hint}</kbd> : null}
    </button>
  );
}
