/**
 * Every error of the client, under one root and with the names that they have in Python.
 *
 * An expected outcome of a write (refused, quarantined, duplicate) is a value and never an error.
 */

/** A problem of the HTTP API, by RFC 9457. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  code?: string;
  /** The wrong fields of a body, of the code `invalid_body`. */
  errors?: unknown;
}

export interface ErrorFacts {
  /** HTTP status of the answer. */
  status?: number | undefined;
  problem?: Problem;
  cause?: unknown;
}

/** Something went wrong in Keepward; see the message. */
export class KeepwardError extends Error {
  /** Stable: that of the problem, or of this class. */
  readonly code: string;
  /** HTTP status of the answer; undefined where there was none. */
  readonly status: number | undefined;
  /** The problem as the server sent it. */
  readonly problem: Problem | undefined;

  constructor(message: string, { status, problem, cause }: ErrorFacts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = problem?.code ?? CODES.get(new.target) ?? "error";
    this.status = status;
    this.problem = problem;
  }
}

/** An argument is not usable; correct it and call again. */
export class InvalidInput extends KeepwardError {}
/** There is nothing by that name here; check the id, the tenant and the scope. */
export class NotFound extends KeepwardError {}
/** The state has changed since it was read; read it again and decide anew. */
export class Conflict extends KeepwardError {}
/** A newer version exists; read the newest one and base the change on it. */
export class StaleVersion extends Conflict {}
/** This token may not do that; ask the owner for one with the right. */
export class Unauthorised extends KeepwardError {}
/** Core memory alone does not fit the budget; raise the budget or shorten a block. */
export class ContextTooSmall extends KeepwardError {}
/** The model cannot be used; install it or choose another. */
export class ModelUnavailable extends KeepwardError {}
/** The store cannot be used. */
export class StoreError extends KeepwardError {}
/** The store cannot be reached right now; nothing was lost, try again. */
export class StoreUnavailable extends StoreError {}
/** The file is not a Keepward store; nothing was written to it. */
export class NotAStore extends StoreError {}
/** The store was written by a newer Keepward; upgrade the server. */
export class NewerSchema extends StoreError {}
/** The server's machine does not know the store; accept it there with `keepward adopt`. */
export class NotAdopted extends StoreError {}
/** A row does not match its seal and was not used; run `keepward verify` where the server runs. */
export class Tampered extends StoreError {}

type ErrorClass = new (message: string, facts?: ErrorFacts) => KeepwardError;

const CLASSES: Record<string, ErrorClass> = {
  error: KeepwardError,
  invalid_input: InvalidInput,
  not_found: NotFound,
  conflict: Conflict,
  stale_version: StaleVersion,
  unauthorised: Unauthorised,
  context_too_small: ContextTooSmall,
  model_unavailable: ModelUnavailable,
  store_error: StoreError,
  store_unavailable: StoreUnavailable,
  not_a_store: NotAStore,
  newer_schema: NewerSchema,
  not_adopted: NotAdopted,
  tampered: Tampered,
};
const CODES = new Map<unknown, string>(Object.entries(CLASSES).map(([code, kind]) => [kind, code]));

/** Return the error of a problem: that of its code, else the nearest one by status. */
export function errorOf(problem: Problem, status?: number): KeepwardError {
  const { code, detail, title } = problem;
  const kind =
    (code === undefined ? undefined : CLASSES[code]) ?? (code === "rate_limited" ? StoreUnavailable : byStatus(status));
  return new kind(detail || title || `the server answered ${status}`, { status, problem });
}

/** Return the error of an answer that is no problem of Keepward. */
export function foreignAnswer(status: number): KeepwardError {
  return new (byStatus(status))(`the server answered ${status} and not as Keepward does`, { status });
}

function byStatus(status: number | undefined): ErrorClass {
  switch (status) {
    case 401:
    case 403:
      return Unauthorised;
    case 404:
      return NotFound;
    case 409:
      return Conflict;
    case 412:
      return StaleVersion;
    case 429:
    case 502:
    case 503:
    case 504:
      return StoreUnavailable;
    default:
      return status !== undefined && status >= 400 && status < 500 ? InvalidInput : StoreError;
  }
}
