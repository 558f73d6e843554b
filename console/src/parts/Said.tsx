/** About whom a memory is, who said its present text, and when. */

import type { Schemas } from "../api";
import { Time } from "./Time";
import { Who } from "./Who";

export function Said({ memory }: { memory: Schemas["Record"] }) {
  return (
    <>
      {memory.subject ? (
        <span>
          about <Who name={memory.subject} />
        </span>
      ) : null}
      <span>
        said by <Who name={memory.speaker ?? memory.text_by} />
      </span>
      <Time at={memory.text_at} />
    </>
  );
}
