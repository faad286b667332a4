/**
 * Decides what happens to a rollout if something throws outside of its environment's hooks. The other rollouts of the
 * shard continue. Pure.
 *
 * Invariants. An error of environment code ends its rollout, wherever the code was called. If a store or a call between
 * objects refuses a value because of its content, each retry would fail too, so this ends the rollout as well. A fault
 * of the platform's code stays until the code changes. But if two objects run different releases, a call between them
 * may work after both run the same one, so there are up to `MOST_FAULTS` tries. The same holds for an isolate that is
 * lost: its own code may end it. Any other error is taken as a store that is unavailable: it is retried until the store
 * is back.
 */
import { EnvError, isError, messageOf, type SerializedError, serializeError } from "../../contract/errors.ts";
import { RowError } from "../../core/rollout/task.ts";
import { refusalOf } from "../kit/storage-faults.ts";

/** The first wait between tries of the platform's own work (storing, reporting). The rollout is not at fault. */
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** The tries of a fault of the platform's code. Together with the waits between them they take about six minutes. */
export const MOST_FAULTS = 20;

const FAULTS_OF_CODE = ["TypeError", "ReferenceError", "SyntaxError", "IsolateLostError"];

/** `failed`: how many tries in a row failed. `faults`: how many in a row, up to the latest, were faults of the code. */
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
  /** The report says only that the rollout ended, and why. Nothing else of the rollout can be reported. */
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

/** The wait grows with the outage. So once a store is back, it is used again after at most half of its outage. */
export function platformWaitMs(failures: number): number {
  const grown = RETRY_MS * 1.5 ** (Math.min(failures, 20) - 1);
  return Math.min(LONGEST_RETRY_MS, Math.round(grown));
}
