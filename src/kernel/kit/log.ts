/**
 * The Worker's log: one JSON line per thing an operator may have to look at. What a user must know is in the API.
 *
 * Invariants. A line has `time`, `level` and `message`, the ids it is about under their own names, and of an error its
 * name, its message and where it was thrown. A message is one of a few fixed texts: what differs stands in ids. No line
 * has a secret: parameters of statements and tokens are taken out, and every text is cut.
 */
import { nameOf, serializeError, stackOf } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import { noteStorage } from "./storage-faults.ts";

/** What a line may be about. Values are ids, names of ours, or numbers; never a text that somebody wrote. */
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
  /** Of Stripe's. */
  readonly event_id?: string;
  /** What a deletion is of. */
  readonly target_id?: string;
  /** Of work that may have ended the process: `rollout/0/1/0`. */
  readonly suspect?: string;
  readonly unit?: number;
  readonly segment?: number;
  readonly queue?: string;
  /** Which delivery of a message, from 1. */
  readonly attempt?: number;
  /** How many things of a kind the line stands for. */
  readonly count?: number;
  /** Of a caller without a key: where it comes from. */
  readonly address?: string;
}

/** Whatever knows some of these: specs of runs and rollouts, messages, asks for leases. */
interface About {
  readonly scope?: Scope | null;
  readonly run_id?: string;
  readonly rollout_id?: string;
  readonly endpoint_id?: string;
}

/** A failed statement repeats its parameters: the beginning says what went wrong. */
const LONGEST = 500;
const MOST_FRAMES = 8;
const FRAME = /^\s*at .{1,200}$/;
/** Drizzle quotes the values of a statement: rows of a user, and what is sealed. */
const PARAMETERS = /\\nparams: (?:[^"\\]|\\.)*/g;
/** Keys of ours, and whatever somebody sends to prove who they are. */
const TOKENS = /\b(?:rk|rki|rct)_[\w-]{8,}|\bBearer\s+[^\s"'\\]+/gi;

/** The ids that something knows of itself. */
export function idsOf({ scope, run_id, rollout_id, endpoint_id }: About): LogIds {
  return {
    ...(scope && { org_id: scope.orgId, project_id: scope.projectId }),
    ...(run_id !== undefined && { run_id }),
    ...(rollout_id !== undefined && { rollout_id }),
    ...(endpoint_id !== undefined && { endpoint_id }),
  };
}

/** Something that failed. `message`: one of a few, without ids. */
export function logError(message: string, ids: LogIds, thrown: unknown): void {
  noteStorage(thrown);
  write({ level: "error", message, ...ids, error: errorOf(thrown) });
}

/** Something that went as it should, and that somebody has to hear of. `about`: ids, names of ours, and numbers. */
export function logNotice(message: string, about: object): void {
  write({ level: "notice", message, ...about });
}

function errorOf(thrown: unknown): Readonly<Record<string, unknown>> {
  const message = clean(serializeError(thrown).error_chain_repr).slice(0, LONGEST);
  return { name: nameOf(thrown).slice(0, LONGEST), message, stack: framesOf(thrown) };
}

/** Without the message that a stack begins with. */
function framesOf(thrown: unknown): readonly string[] {
  const frames = stackOf(thrown)
    .split("\n")
    .filter((line) => FRAME.test(line));
  return frames.slice(0, MOST_FRAMES).map((frame) => frame.trim());
}

function clean(text: string): string {
  return text.replaceAll(PARAMETERS, "").replaceAll(TOKENS, "[token]");
}

function write(line: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: the runtime's log is the console, and this is its one door
  console.error(JSON.stringify({ time: new Date().toISOString(), ...line }));
}
