/** A table that stays within its place on a narrow screen. */

import "./table.css";
import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
  /** Numbers stand to the right, under each other. */
  num?: boolean;
  /** Left out where there is little room. */
  wide?: boolean;
  /** Its cells are words, none of which is broken in two. */
  words?: boolean;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  /** Says what the table lists, to those who do not see it. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
}

export function Table<T>({ label, columns, rows, keyOf }: Props<T>) {
  return (
    <table class="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map((each) => (
            <th key={each.title} scope="col" class={named(each)}>
              {each.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((each) => (
              <td key={each.title} class={named(each)}>
                {each.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function named<T>(column: Column<T>): string {
  return [column.num && "n", column.wide && "wide-only", column.words && "words"].filter(Boolean).join(" ");
}
