/** Screens whose code is loaded when they are first shown. */

import { useEffect, useReducer, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import type { Problem } from "../api";
import { Page } from "./Page";
import { Failed, Loading } from "./States";

/** A screen that can be loaded before it is shown. */
export type LazyScreen = ComponentType & { preload: () => Promise<unknown> };

const MISSING: Problem = {
  status: 0,
  code: "screen_missing",
  title: "This screen could not be loaded",
  detail: "The server does not answer, or it was updated since you opened this page. Loading the page again helps.",
};

/** Return a screen that loads its code by `load`; `title` is its heading until then. */
export function lazy(title: string, load: () => Promise<ComponentType>): LazyScreen {
  let Loaded: ComponentType | undefined;
  const preload = () => load().then((component) => (Loaded = component));
  function Screen() {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const [failed, fail] = useState(false);
    const Drawn = Loaded;
    useEffect(() => {
      let shown = true;
      // It may have been loaded since this was drawn.
      void preload().then(
        () => shown && Drawn !== Loaded && redraw(undefined),
        () => shown && fail(true),
      );
      return () => {
        shown = false;
      };
      // It loads once.
      // eslint-disable-next-line react-hooks/exhaustive-deps
    }, []);
    if (Drawn) return <Drawn />;
    return (
      <Page title={title}>
        {failed ? <Failed problem={MISSING} retry={() => location.reload()} /> : <Loading rows={6} />}
      </Page>
    );
  }
  return Object.assign(Screen, { preload });
}
