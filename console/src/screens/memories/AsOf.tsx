/** A slider over all commits: what held then. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Address } from "../../address";
import { useGet } from "../../load";
import { status } from "../../status";
import { Button } from "../../parts/Button";
import { Time } from "../../parts/Time";

export function AsOf({ address }: { address: Address }) {
  const newest = Number(status.value?.head.split(":")[0] ?? 0);
  const named = address.get("at");
  const at = /^\d+$/.test(named) ? Math.min(Number(named), newest) : newest;
  const [value, setValue] = useState(at);
  const due = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setValue(at), [at]);
  const commit = useGet(
    named && at ? "/memory/commits" : null,
    { params: { query: { before: at + 1, limit: 1 } } },
    null,
  );
  const move = (to: number) => {
    setValue(to);
    clearTimeout(due.current);
    due.current = setTimeout(() => address.set({ at: to >= newest ? null : to }), 140);
  };
  const shown = commit.data?.items.shown[0];
  return (
    <div class="as-of">
      <label for="as-of">{value >= newest ? "As of now" : `As of commit ${value.toLocaleString()}`}</label>
      <input
        id="as-of"
        type="range"
        min={0}
        max={newest}
        value={value}
        onInput={(event) => move(Number(event.currentTarget.value))}
        aria-valuetext={value >= newest ? "now" : `commit ${value}`}
      />
      <span class="soft small as-of-when">
        {value < newest && value === at ? (
          shown ? (
            <Time at={shown.commit.at} />
          ) : at ? (
            ""
          ) : (
            "before the first commit"
          )
        ) : null}
      </span>
      {value < newest ? (
        <Button small tone="quiet" onClick={() => address.set({ at: null })}>
          Now
        </Button>
      ) : null}
    </div>
  );
}
