/** What a person is still changing, told on once they pause. */

import { useEffect, useState } from "preact/hooks";

/** Return a value as it was when it last stood still for some milliseconds. */
export function useSettled<T>(value: T, pause = 140): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const due = setTimeout(() => settle(value), pause);
    return () => clearTimeout(due);
  }, [value, pause]);
  return settled;
}
