/** A dialog over the page; the browser keeps the focus in it and gives it back. */

import "./dialog.css";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at its foot, the main one last. */
  foot?: ComponentChildren;
  wide?: boolean;
  /** Called with the form inside is sent; Enter in a field does that. */
  onSubmit?: () => void;
}

/** Shown for as long as it is in the tree. */
export function Dialog({ title, onClose, children, foot, wide, onSubmit }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const name = useId();
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
        onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <h2 id={name}>{title}</h2>
        <div class="dialog-body">{children}</div>
        {foot ? <div class="dialog-foot">{foot}</div> : null}
      </form>
    </dialog>
  );
}
