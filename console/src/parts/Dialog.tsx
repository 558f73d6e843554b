/**
 * A dialog over the page; the browser keeps the focus in it and gives it back.
 *
 * What was written in it, or is shown once, is not lost by one slip: Escape and a click beside it ask again.
 */

import "./dialog.css";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at its foot, the main one last. */
  foot?: ComponentChildren;
  wide?: boolean;
  /** Called with the form inside is sent; Enter in a field does that. */
  onSubmit?: () => void;
  /** What would be lost with it, where that is more than what was written. */
  holds?: string;
}

/** Shown for as long as it is in the tree. */
export function Dialog({ title, onClose, children, foot, wide, onSubmit, holds }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const name = useId();
  const [written, setWritten] = useState(false);
  const [warned, setWarned] = useState(false);
  const pressed = useRef<EventTarget | null>(null);
  const leave = () => {
    if (warned || !(written || holds)) onClose();
    else setWarned(true);
  };
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? "wide" : ""}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        leave();
      }}
      // The browser heeds an Escape that follows another, whatever is said to it.
      onClose={() => {
        if (box.current?.isConnected && !box.current.open) onClose();
      }}
      onPointerDown={(event) => (pressed.current = event.target)}
      onClick={(event) => {
        // What was selected beyond the edge is no click beside it.
        if (event.target === box.current && pressed.current === box.current) leave();
      }}
    >
      <form
        onInput={(event) => {
          setWarned(false);
          if (
            event.target instanceof HTMLTextAreaElement ||
            (event.target instanceof HTMLInputElement && event.target.type === "text")
          )
            setWritten(true);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          event.currentTarget.querySelector<HTMLButtonElement>("button[type=submit]:enabled")?.click();
        }}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <h2 id={name}>{title}</h2>
        <div class="dialog-body">{children}</div>
        {warned ? (
          <p class="warn" role="alert">
            {holds ?? "What you wrote here would be lost."} Escape once more leaves it.
          </p>
        ) : null}
        {foot ? <div class="dialog-foot">{foot}</div> : null}
      </form>
    </dialog>
  );
}
