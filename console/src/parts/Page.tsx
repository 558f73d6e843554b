/** The frame of a screen: its title, what it is about in a few words, and the address of its JSON. */

import "./common";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** What there is to know in a line. */
  lede?: ComponentChildren;
  /** Address of the API behind this screen. */
  json?: string;
  /** Buttons of the whole screen. */
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, lede, json, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Keepward`;
  }, [title]);
  useEffect(() => {
    // Who came here by a link or a key goes on reading from the heading.
    if (document.activeElement === document.body || document.activeElement?.closest("nav")) heading.current?.focus();
  }, []);
  return (
    <>
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lede ? <span class="soft">{lede}</span> : null}
        <span class="spread" />
        {actions}
        {json ? (
          <a class="json soft" href={json} target="_blank" rel="noreferrer">
            JSON
          </a>
        ) : null}
      </header>
      {children}
    </>
  );
}
