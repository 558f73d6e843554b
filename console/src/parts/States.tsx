/** What a place shows when it has nothing to show: empty, loading, failed. */

import "./states.css";
import type { ComponentChildren } from "preact";
import type { Problem } from "../api";
import type { Loaded } from "../load";
import { status } from "../status";
import { Button } from "./Button";
import { said, seen } from "./seen";

/** Nothing is there, and that is all right; `children` say what would be, or what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <p class="state-title">{title}</p>
      {children ? <div class="soft">{children}</div> : null}
    </div>
  );
}

/** No memory is found: nothing was ever written, or what is asked for leaves all of it out. */
export function NoMemory() {
  if (status.value?.head.startsWith("0:")) {
    return (
      <Empty title="Nothing is remembered yet">
        What an agent remembers, or you with <code>keepward remember</code>, is here at once.
      </Empty>
    );
  }
  return (
    <Empty title="No memory is here">
      Take a filter off, or look at another commit. Ended ones are shown when asked for.
    </Empty>
  );
}

/** What is being read; drawn after a moment only, so that what is quick does not flicker. */
export function Loading({ rows = 3, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <div class="state loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} class="bone" />
      ))}
    </div>
  );
}

/** What went wrong and what to do about it. */
export function Failed({ problem, retry }: { problem: Problem; retry?: () => void }) {
  // The banner says once for all parts that the server is away.
  if (problem.code === "offline") return <Empty title="Not loaded yet">It is loaded once the server answers.</Empty>;
  return (
    <div class="state failed" role="alert">
      <p class="state-title">{seen(problem.title)}</p>
      <p class="soft">{said(problem.detail)}</p>
      {retry ? (
        <Button small onClick={retry}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

/** Draw what was loaded, or why there is nothing yet; what was there stays while it is read again. */
export function Shown<T>({
  of,
  rows,
  children,
}: {
  of: Loaded<T>;
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.problem) return <Failed problem={of.problem} retry={of.reload} />;
  return of.loading ? <Loading rows={rows} /> : null;
}
