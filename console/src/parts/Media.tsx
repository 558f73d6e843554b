/** What a memory has beside its words: a picture, sound or film is shown, anything else can only be taken. */

import "./media.css";
import { ask, type Answer } from "../api";
import { useLoad } from "../load";
import { Shown } from "./States";

// Types that a browser shows without running anything in them; the server sends all others as unknown bytes.
const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
const SOUND = /^audio\/(mpeg|ogg|wav|x-wav|webm|mp4|aac|flac)$/;
const FILM = /^video\/(mp4|webm|ogg)$/;

const UNKNOWN = "application/octet-stream";

export function Media({ reference, text }: { reference: string; text: string }) {
  const from = `/memory/blobs/${encodeURIComponent(reference)}`;
  const found = useLoad(from, () => about(from), null);
  return <Shown of={found}>{(data) => <Held {...data} from={from} text={text} />}</Shown>;
}

interface About {
  kind: string;
  bytes: number;
}

async function about(from: string): Promise<Answer<About>> {
  const response = fetch(from, { method: "HEAD" });
  return ask(
    response.then((told) => ({
      response: told,
      data: {
        kind: told.headers.get("content-type")?.split(";")[0] ?? "",
        bytes: Number(told.headers.get("content-length")),
      },
    })),
  );
}

function Held({ kind, bytes, from, text }: About & { from: string; text: string }) {
  return (
    <figure class="media">
      {PICTURES.test(kind) ? <img src={from} alt={text.slice(0, 300)} /> : null}
      {SOUND.test(kind) ? <audio controls preload="metadata" src={from} /> : null}
      {FILM.test(kind) ? <video controls preload="metadata" src={from} /> : null}
      <figcaption class="line small soft">
        <span>
          {kind}, {size(bytes)}
        </span>
        {kind === UNKNOWN ? (
          <span class="warn">It could run in a browser, or its type is unknown, and so it is not shown.</span>
        ) : null}
        <a href={from} download="">
          Download
        </a>
      </figcaption>
    </figure>
  );
}

function size(bytes: number): string {
  return bytes < 1_000
    ? `${bytes} bytes`
    : bytes < 1_000_000
      ? `${(bytes / 1_000).toFixed(0)} kB`
      : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
