/**
 * The Worker's log: one JSON line for each event that an operator may have to look at. What a user needs is in the API.
 *
 * Invariants. A line has `time`, `level` and `message`, the ids it concerns under their own names, and for an error its
 * name, its message and its stack frames. A message is one of a few fixed texts; everything variable is in the ids. No
 * line has a secret: statement parameters and tokens are removed, and every text is cut.
 */
import { nameOf, serializeError, stackOf } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import { noteStorage } from "./storage-faults.ts";

/** What a line may concern. Values are ids, our own names, or numbers; never a text that a user wrote. */
export interface LogIds {
  readonly request_id?: string;
  readonly org_id?: string;
  readonly project_id?: string;
  readonly run_id?: string;
  readonly rollout_id?: string;
  readonly endpoint_id?: string;
  readonly key_id?: string;
  readonly secret_id?: string;
  readonly batch_id?: string;
  readonly webhook_id?: string;
  readonly trigger_id?: string;
  /** An event of Stripe. */
  readonly event_id?: string;
  /** What a deletion deletes. */
  readonly target_id?: string;
  /** Work that may have ended the process: `rollout/0/1/0`. */
  readonly quarantine?: string;
  readonly unit?: number;
  readonly segment?: number;
  readonly queue?: string;
  /** Which delivery of a message, counted from 1. */
  readonly attempt?: number;
  /** How many things of a kind the line covers. */
  readonly count?: number;
  /** Network address of a caller without a key. */
  readonly address?: string;
}

/** An object that has some of these ids: specs of runs and rollouts, messages, requests for leases. */
interface About {
  readonly scope?: Scope | null;
  readonly run_id?: string;
  readonly rollout_id?: string;
  readonly endpoint_id?: string;
}

/** Of a message that is longer the middle is left out: its beginning says what failed, and its end the first cause. */
const LONGEST = 500;
const MOST_FRAMES = 8;
const FRAME = /^\s*at .{1,200}$/;
/** Drizzle quotes the values of a statement: rows of a user, and sealed values. */
const PARAMETERS = /\\nparams: (?:[^"\\]|\\.)*/g;
/** Our own keys, and bearer tokens of any kind. */
const TOKENS = /\b(?:rk|rki|rct)_[\w-]{8,}|\bBearer\s+[^\s"'\\]+/gi;

/** The ids that an object has. */
export function idsOf({ scope, run_id, rollout_id, endpoint_id }: About): LogIds {
  return {
    ...(scope && { org_id: scope.orgId, project_id: scope.projectId }),
    ...(run_id !== undefined && { run_id }),
    ...(rollout_id !== undefined && { rollout_id }),
    ...(endpoint_id !== undefined && { endpoint_id }),
  };
}

/** Logs a failure. `message`: one of a few fixed texts, without ids. */
export function logError(message: string, ids: LogIds, thrown: unknown): void {
  noteStorage(thrown);
  write({ level: "error", message, ...ids, error: errorOf(thrown) });
}

/** Logs something that went well and that an operator should see. `about`: ids, our own names, and numbers. */
export function logNotice(message: string, about: object): void {
  write({ level: "notice", message, ...about });
}

function errorOf(thrown: unknown): Readonly<Record<string, unknown>> {
  const message = cut(clean(serializeError(thrown).error_chain_repr));
  return { name: nameOf(thrown).slice(0, LONGEST), message, stack: framesOf(thrown) };
}

/** The frames of a stack, without its message. */
function framesOf(thrown: unknown): readonly string[] {
  const frames = stackOf(thrown)
    .split("\n")
    .filter((line) => FRAME.test(line));
  return frames.slice(0, MOST_FRAMES).map((frame) => frame.trim());
}

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST / 2)} … ${text.slice(-LONGEST / 2)}`;
}

function clean(text: string): string {
  return text.replaceAll(PARAMETERS, "").replaceAll(TOKENS, "[token]");
}

function write(line: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: the runtime's log is the console, and only this line writes to it
  console.error(JSON.stringify({ time: new Date().toISOString(), ...line }));
}
