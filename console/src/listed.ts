/** What was read of a list, with how many there are: no screen can show a part as if it were the whole. */

/** Items that were read, and how many there are of them. */
export class Listed<T> {
  constructor(
    readonly shown: readonly T[],
    /** How many there are; undefined where there are more than were read, and nobody counted them. */
    readonly total: number | undefined,
  ) {}

  /** How many there are, as a screen says it: `1,204`, or `50+` where nobody counted them. */
  get count(): string {
    return this.total?.toLocaleString() ?? `${this.shown.length.toLocaleString()}+`;
  }

  /** How many are not among those that were read, as `12 more`; `more` where nobody counted, empty for none. */
  get rest(): string {
    return this.left === undefined ? "more" : this.left ? `${this.left.toLocaleString()} more` : "";
  }

  /** How many are not among those that were read; undefined where nobody counted. */
  get left(): number | undefined {
    return this.total === undefined ? undefined : Math.max(0, this.total - this.shown.length);
  }

  /** Whether there is none. */
  get isEmpty(): boolean {
    return this.total === 0;
  }

  /** Whether all of them were read. */
  get isWhole(): boolean {
    return this.rest === "";
  }

  /** Return how many there are with their name: `1 memory`, `50+ memories`. */
  named(one: string, many = `${one}s`): string {
    return `${this.count} ${this.total === 1 ? one : many}`;
  }

  /** Return the first of those that were read; how many there are stays. */
  first(most: number): Listed<T> {
    return this.shown.length > most ? new Listed(this.shown.slice(0, most), this.total) : this;
  }

  /** Return what a function makes of each. */
  map<U>(make: (item: T) => U): Listed<U> {
    return new Listed(this.shown.map(make), this.total);
  }

  /** Return those that were read, in an order. */
  sorted(order: (one: T, other: T) => number): Listed<T> {
    return new Listed([...this.shown].sort(order), this.total);
  }

  /** Return them with some others, which are not among them. */
  plus(others: readonly T[]): Listed<T> {
    return new Listed([...this.shown, ...others], this.total === undefined ? undefined : this.total + others.length);
  }

  /** Return those before the first that fails a test; how many is known where one fails, or all were read. */
  before(fails: (item: T) => boolean): Listed<T> {
    const end = this.shown.findIndex(fails);
    if (end < 0) return this;
    return new Listed(this.shown.slice(0, end), end);
  }
}

/** Return a list that was read whole. */
export function whole<T>(items: readonly T[]): Listed<T> {
  return new Listed(items, items.length);
}
