/** The spans of days that the journal offers. */

export const WEEK = 7;
export const SPANS = [
  ["Today", 0],
  ["Last 7 days", WEEK],
  ["Last 30 days", 30],
  ["From the beginning", null],
] as const;

/** Return the instant at which the day of so many days ago began, for the reader. */
export function daysAgo(days: number): string {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).toISOString();
}

/** Return the reader's day of a moment, as a date field takes it. */
export function localDay(at: Date): string {
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
}
