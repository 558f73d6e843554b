/** What a memory has beside its words: a picture, sound or film is shown, anything else can only be taken. */

import "./media.css";
import type { Schemas } from "../api";
import { useGet } from "../load";
import { Shown } from "./States";

// Types that a browser shows without running anything in them; the server sends all others as unknown bytes.
const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
const SOUND = /^audio\/(mpeg|ogg|wav|x-wav|webm|mp4|aac|flac)$/;
const FILM = /^video\/(mp4|webm|ogg)$/;

export function Media({ reference, text }: { reference: string; text: string }) {
  const found = useGet("/memory/blobs/{ref}/about", { params: { path: { ref: reference } } }, null);
  return <Shown of={found}>{(data) => <Held blob={data} text={text} />}</Shown>;
}

function Held({ blob, text }: { blob: Schemas["Blob"]; text: string }) {
  const from = `/memory/blobs/${encodeURIComponent(blob.ref)}`;
  const kind = blob.active ? "" : blob.media_type;
  return (
    <figure class="media">
      {PICTURES.test(kind) ? <img src={from} alt={text.slice(0, 300)} /> : null}
      {SOUND.test(kind) ? <audio controls preload="metadata" src={from} /> : null}
      {FILM.test(kind) ? <video controls preload="metadata" src={from} /> : null}
      <figcaption class="line small soft">
        <span>{blob.media_type}, {size(blob.bytes)}</span>
        {blob.active ? <span class="warn">It could run in a browser, and so is not shown.</span> : null}
        <a href={from} download="">Download</a>
      </figcaption>
    </figure>
  );
}

function size(bytes: number): string {
  return bytes < 1_000 ? `${bytes} bytes` : bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(0)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
