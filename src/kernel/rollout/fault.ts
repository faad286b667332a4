/**
 * What becomes of a rollout when something throws outside of its hooks; those beside it in the object go on. Pure.
 *
 * Invariants. What environment code throws ends its rollout, wherever it was called. What is refused for what it is would be
 * refused for ever, and ends it too. A fault of our own code stays until the code is another one; that of a call to another
 * object may be gone once both are of one release, so it is worth some tries. Everything else is a store that is away: it is
 * asked again for as long as it takes.
 */
import { EnvError, isError, messageOf, type SerializedError, serializeError } from "../../contract/errors.ts";
import { RowError } from "../../core/rollout/task.ts";
import { refusalOf } from "../kit/storage-faults.ts";

/** Between tries of what the platform itself must still do (store, report): it is not the rollout's failure. */
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** With the waits between them some six minutes. */
export const MOST_FAULTS = 20;

const FAULTS_OF_CODE = ["TypeError", "ReferenceError", "SyntaxError"];

/** In a row: all of them, and those at the end of them that met a fault of the code. */
export interface FailedTries {
  readonly failed: number;
  readonly faults: number;
  /** When the next one is due, in epoch milliseconds. */
  readonly until?: number;
}
export const NO_TRIES: FailedTries = { failed: 0, faults: 0 };

export function withFailed({ failed, faults }: FailedTries, thrown: unknown): FailedTries {
  return { failed: failed + 1, faults: isOfCode(thrown) ? faults + 1 : 0 };
}

export type RolloutFault =
  | { readonly kind: "environment"; readonly error: SerializedError }
  /** Nothing of the rollout but its end can be reported. */
  | { readonly kind: "platform"; readonly why: string }
  | { readonly kind: "waits" };

/** `tries`: with this one. */
export function faultOf(thrown: unknown, { faults }: FailedTries): RolloutFault {
  if (isError(thrown, EnvError) || isError(thrown, RowError)) {
    return { kind: "environment", error: serializeError(thrown) };
  }
  const refusal = refusalOf(thrown);
  if (refusal !== null) {
    return { kind: "platform", why: `its result could not be stored: ${refusal}` };
  }
  if (faults < MOST_FAULTS) return { kind: "waits" };
  const why = `the platform failed ${faults} times: ${messageOf(thrown)}`;
  return { kind: "platform", why };
}

function isOfCode(thrown: unknown): boolean {
  return isError(thrown, Error) && FAULTS_OF_CODE.includes(thrown.name);
}

/** A store that is back is noticed at the latest half as long after as it was away, up to the longest wait. */
export function platformWaitMs(failures: number): number {
  const grown = RETRY_MS * 1.5 ** (Math.min(failures, 20) - 1);
  return Math.min(LONGEST_RETRY_MS, Math.round(grown));
}
