/** What a person is still changing, told on once they pause. */

import { useEffect, useState } from "preact/hooks";

/** Milliseconds without a change after which a value counts. */
const PAUSE_MS = 140;

/** Return a value as it was when it was last unchanged for PAUSE_MS. */
export function useDebounced<T>(value: T): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const due = setTimeout(() => settle(value), PAUSE_MS);
    return () => clearTimeout(due);
  }, [value]);
  return settled;
}
