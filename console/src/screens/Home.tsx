/** Home: whether all is well, in five seconds. */

import { status } from "../status";
import { Page } from "../parts/Page";
import { Loading } from "../parts/States";

export function Home() {
  const now = status.value;
  return (
    <Page title="Home" json="/memory/status">
      {now ? (
        <div class="card pad">
          {now.live.toLocaleString()} memories, {now.quarantine.depth} waiting for review.
        </div>
      ) : (
        <Loading />
      )}
    </Page>
  );
}
