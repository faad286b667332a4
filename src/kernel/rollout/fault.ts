/**
 * Decides what happens to a rollout if something throws outside of its hooks. Other rollouts in the object continue.
 * Pure.
 *
 * Invariants. An error of environment code ends its rollout, wherever the code was called. A value that is refused for
 * its content would always be refused, so it ends the rollout too. A fault of the platform's code stays until the code
 * changes; but in a call to another object it may disappear once both run the same release, so there are some tries.
 * Any other error is an unavailable store: it is retried for as long as it takes.
 */
import { EnvError, isError, messageOf, type SerializedError, serializeError } from "../../contract/errors.ts";
import { RowError } from "../../core/rollout/task.ts";
import { refusalOf } from "../kit/storage-faults.ts";

/** Wait between tries of the platform's own work (storing, reporting): the failure is not the rollout's. */
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** About six minutes with the waits between them. */
export const MOST_FAULTS = 20;

const FAULTS_OF_CODE = ["TypeError", "ReferenceError", "SyntaxError"];

/** Failed tries in a row: all of them, and how many of the latest were faults of the code. */
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
  /** Only the end of the rollout can be reported, and nothing else of it. */
  | { readonly kind: "platform"; readonly why: string }
  | { readonly kind: "waits" };

/** `tries`: including this one. */
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

/** The wait grows with the outage: a store that is back is used again after at most half of its outage. */
export function platformWaitMs(failures: number): number {
  const grown = RETRY_MS * 1.5 ** (Math.min(failures, 20) - 1);
  return Math.min(LONGEST_RETRY_MS, Math.round(grown));
}
