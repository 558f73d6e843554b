/** What of a list is damaged and not shown, with what to do: in red, above what is intact. */

import { said } from "./seen";

export function Damage({ notes }: { notes: readonly string[] }) {
  if (!notes.length) return null;
  return (
    <div class="pad stack" role="alert" aria-label="Damaged">
      {notes.map((note) => (
        <p key={note} class="bad">
          {said(note)}
        </p>
      ))}
    </div>
  );
}

/** Return what to say of versions or receipts that do not match their seals. */
export function damageOf(count: number, one: string, many: string): string[] {
  if (!count) return [];
  const what = count === 1 ? `1 ${one} is` : `${count.toLocaleString()} ${many} are`;
  return [
    `${what} damaged and not counted; \`keepward verify\` names each fault, \`keepward store recover\` copies what is intact`,
  ];
}
