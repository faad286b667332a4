/**
 * What can go wrong in a rollout, by verifiers' class names, and how it is recorded.
 * A failed rollout is data: an error is serialised with its chain of causes and never becomes a score. Errors quote what
 * they met, which may be of any length: whatever is stored of one is cut here.
 */
import { LIMITS } from "./limits.ts";
import { shortText } from "./shown-text.ts";

/** Base of every error of the library. `retryable` says whether the same rollout, run again, may well succeed. */
export class RolloutError extends Error {
  override readonly name: string = "RolloutError";
  readonly retryable: boolean;

  constructor(message: string, options?: { cause?: unknown; retryable?: boolean }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.retryable = options?.retryable ?? false;
  }
}

export class ModelError extends RolloutError {
  override readonly name: string = "ModelError";
}
export class InvalidModelResponseError extends ModelError {
  override readonly name: string = "InvalidModelResponseError";
  override readonly retryable = true;
}
export class EmptyModelResponseError extends InvalidModelResponseError {
  override readonly name: string = "EmptyModelResponseError";
}
/** A policy of the endpoint (a content filter, a safety check) stopped the reply: another try would be stopped, too. */
export class PolicyRefusalError extends ModelError {
  override readonly name: string = "PolicyRefusalError";
}
/** The endpoint refused our credentials: it stops the run, since every rollout would fail alike. */
export class AuthenticationError extends ModelError {
  override readonly name: string = "AuthenticationError";
}
/** The endpoint replied 403, and does not say whether our credentials or this prompt is refused. */
export class PermissionDeniedError extends ModelError {
  override readonly name: string = "PermissionDeniedError";
}
export class OverlongPromptError extends RolloutError {
  override readonly name: string = "OverlongPromptError";
}
export class ToolError extends RolloutError {
  override readonly name: string = "ToolError";
}
export class ToolParseError extends ToolError {
  override readonly name: string = "ToolParseError";
}
export class ToolCallError extends ToolError {
  override readonly name: string = "ToolCallError";
}
/** A call of a tool that is not there. Python's name for it, which is how records of verifiers have it. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}
/**
 * Arguments of a call that are no JSON, or no object where hidden ones are added to them. Python's name for it; a listed one stands
 * for SyntaxError too, since what Python's decoder throws is a kind of it.
 */
export class ValueError extends Error {
  override readonly name = "ValueError";
}
export class InfraError extends RolloutError {
  override readonly name: string = "InfraError";
  override readonly retryable = true;
}
/** A container a tool works in was lost, or could not be reached. */
export class SandboxError extends InfraError {
  override readonly name: string = "SandboxError";
}
/** The same of a browser. */
export class BrowserSandboxError extends SandboxError {
  override readonly name: string = "BrowserSandboxError";
}
/** The way to a service inside a container broke. */
export class TunnelError extends InfraError {
  override readonly name: string = "TunnelError";
}
/** The name of the error of a call that was not made because the endpoint was given another address. */
export const ENDPOINT_MOVED = "EndpointMoved";

/** A stage of a rollout that took longer than it may. `whole`: what ended is not its own time but the rollout's. */
export class StageTimeoutError extends RolloutError {
  override readonly name: string = "StageTimeoutError";
  override readonly retryable = true;
  readonly whole: boolean;

  constructor(message: string, whole = false) {
    super(message);
    this.whole = whole;
  }
}
/** An exception from environment code, or a value from it that cannot be stored. */
export class EnvError extends RolloutError {
  override readonly name: string = "EnvError";
}
/** A statement of SQL that was not run, for what it would cost. */
export class SqlWorkError extends EnvError {
  override readonly name: string = "SqlWorkError";
}
/** A score that could not be produced. */
export class ScoringError extends RolloutError {
  override readonly name: string = "ScoringError";
}

/** Why a rollout ended as `failed`. */
export const FAILURE_CLASSES = [
  "provider",
  "environment",
  "environment_changed",
  "tool_outcome_unknown",
  "timeout",
  "platform",
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** Why a rollout ended as `cancelled`. */
export const CANCEL_REASONS = ["stale", "overload", "user", "budget", "deadline", "version_reset"] as const;
export type CancelReason = (typeof CANCEL_REASONS)[number];

/** Why a rollout that ended well has no reward. */
export const UNSCORED_CAUSES = ["judge", "scorer", "non_finite"] as const;
export type UnscoredCause = (typeof UNSCORED_CAUSES)[number];

/** An error as it is stored and sent. The chain follows causes; `error_chain_str` lists class names only. */
export interface SerializedError {
  readonly error: string;
  readonly message: string;
  readonly error_chain_str: string;
  readonly error_chain_repr: string;
  readonly retryable: boolean;
}

/** Never throws, whatever was thrown. */
export function serializeError(thrown: unknown): SerializedError {
  const chain = causesOf(thrown);
  const first = chain[0];
  const name = first?.name ?? "Error";
  return shortError({
    error: name,
    message: first?.message || name,
    error_chain_str: chain.map((link) => link.name).join(" -> "),
    error_chain_repr: chain.map((link) => `${link.name}(${JSON.stringify(link.message)})`).join(" -> "),
    retryable: isError(thrown, RolloutError) && readOr(false, () => thrown.retryable === true),
  });
}

/** The same with each of its texts cut to what is stored. */
export function shortError(serialized: SerializedError): SerializedError {
  const { error, message, error_chain_str, error_chain_repr, retryable } = serialized;
  const short = (text: string) => shortText(text, LIMITS.errorCharacters);
  return {
    error: shortText(error, LIMITS.nameCharacters),
    message: short(message),
    error_chain_str: short(error_chain_str),
    error_chain_repr: short(error_chain_repr),
    retryable,
  };
}

/** The first of them, as many as are stored; where that is not all, `rest` says so in place of the others. */
export function firstErrors<Listed>(errors: readonly Listed[], rest: (count: number) => Listed): readonly Listed[] {
  let left = LIMITS.errorListCharacters;
  const fits = errors.findIndex((error) => {
    left -= JSON.stringify(error).length;
    return left < 0;
  });
  return fits === -1 ? errors : [...errors.slice(0, fits), rest(errors.length - fits)];
}

/** `instanceof` for what environment code threw. Never throws: a proxy's trap does, and then it is not one of our errors. */
export function isError<Kind extends Error>(
  thrown: unknown,
  kind: abstract new (...args: never[]) => Kind,
): thrown is Kind {
  return readOr(false, () => thrown instanceof kind);
}

/** Whether it says that the time of the whole rollout is over. Never throws. */
export function endsTheWhole(thrown: unknown): boolean {
  return isError(thrown, StageTimeoutError) && readOr(false, () => thrown.whole === true);
}

/** What a thrown value says. Never throws: it may be any value, with a text or without. */
export function messageOf(thrown: unknown): string {
  return saidBy(thrown) ?? `no message (${typeof thrown})`;
}

/** The same; null where nothing can be read, or an error's message is no text. Never throws. */
export function saidBy(thrown: unknown): string | null {
  return readOr(null, () => {
    if (!isError(thrown, Error)) return String(thrown);
    const message: unknown = thrown.message;
    return typeof message === "string" ? message : null;
  });
}

/** Where an error was thrown, in the words of the engine; empty where it does not say. Never throws. */
export function stackOf(thrown: unknown): string {
  return readOr("", () => (isError(thrown, Error) ? String(thrown.stack ?? "") : ""));
}

/** Never throws. */
export function nameOf(thrown: unknown): string {
  return readOr("Error", () => String(isError(thrown, Error) ? thrown.name : typeof thrown));
}

function causeOf(thrown: unknown): unknown {
  return readOr(undefined, () => (isError(thrown, Error) ? thrown.cause : undefined));
}

/** What is read of a value that may be anything: its getters are the code of whoever threw it. */
function readOr<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** The class of a rollout that ended with this error from its environment. */
export function environmentFailure({ error }: SerializedError): FailureClass {
  return error === "StageTimeoutError" ? "timeout" : "environment";
}

/** Wraps what environment code threw, unless it already is an error of the library. */
export function asEnvError(thrown: unknown, where: string): RolloutError {
  if (isError(thrown, RolloutError)) return thrown;
  return new EnvError(`${where}: ${messageOf(thrown)}`, { cause: thrown });
}

function causesOf(thrown: unknown): { name: string; message: string }[] {
  const chain: { name: string; message: string }[] = [];
  let link: unknown = thrown;
  // A cycle of causes would never end; eight links tell any story worth telling.
  while (link !== undefined && link !== null && chain.length < 8) {
    const message = shortText(messageOf(link), LIMITS.errorCharacters);
    chain.push({ name: shortText(nameOf(link), LIMITS.nameCharacters), message });
    link = causeOf(link);
  }
  return chain;
}
