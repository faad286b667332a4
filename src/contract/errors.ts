/**
 * The errors of a rollout, by verifiers' class names, and how they are recorded. A failed rollout is data: an error is
 * serialised with its chain of causes and never becomes a score. An error may quote a text of any length: every stored
 * text of it is cut here.
 */
import { LIMITS } from "./limits.ts";
import { shortText } from "./shown-text.ts";

/** Base of every error of the library. `retryable`: whether the same rollout, run again, may well succeed. */
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
/** A policy of the endpoint (a content filter, a safety check) stopped the reply: a retry would be stopped, too. */
export class PolicyRefusalError extends ModelError {
  override readonly name: string = "PolicyRefusalError";
}
/** The endpoint refused our credentials. It stops the run, since every rollout would fail in the same way. */
export class AuthenticationError extends ModelError {
  override readonly name: string = "AuthenticationError";
}
/** The endpoint replied 403, which does not show whether our credentials or this prompt is refused. */
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
/** A call of a tool that does not exist. The name is Python's, as verifiers records it. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}
/**
 * The arguments of a call are not JSON, or not an object although hidden arguments are added to them. The name is
 * Python's. Listed as a retried error, it includes SyntaxError, because the error of Python's JSON decoder is a
 * ValueError.
 */
export class ValueError extends Error {
  override readonly name = "ValueError";
}
export class InfraError extends RolloutError {
  override readonly name: string = "InfraError";
  override readonly retryable = true;
}
/** The container that a tool works in was lost, or could not be reached. */
export class SandboxError extends InfraError {
  override readonly name: string = "SandboxError";
}
/** The same for a browser. */
export class BrowserSandboxError extends SandboxError {
  override readonly name: string = "BrowserSandboxError";
}
/** The connection to a service inside a container broke. */
export class TunnelError extends InfraError {
  override readonly name: string = "TunnelError";
}
/** The error name of a call that was not made because the endpoint's address was changed. */
export const ENDPOINT_MOVED = "EndpointMoved";

/** A stage of a rollout exceeded its time. `whole`: the time of the whole rollout ended, not that of the stage. */
export class StageTimeoutError extends RolloutError {
  override readonly name: string = "StageTimeoutError";
  override readonly retryable = true;
  readonly whole: boolean;

  constructor(message: string, whole = false) {
    super(message);
    this.whole = whole;
  }
}
/** Environment code threw, or returned a value that cannot be stored. */
export class EnvError extends RolloutError {
  override readonly name: string = "EnvError";
}
/** The program that plays a rollout in place of its environment failed, or none played it. */
export class AgentError extends RolloutError {
  override readonly name: string = "AgentError";
}
/** A SQL statement was not run because its estimated work exceeds the limit. */
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
  "agent",
  "platform",
] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** Why a rollout ended as `cancelled`. */
export const CANCEL_REASONS = ["stale", "overload", "user", "budget", "deadline", "version_reset"] as const;
export type CancelReason = (typeof CANCEL_REASONS)[number];

/** Why a completed rollout has no reward. */
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

/** Serialises any thrown value. Never throws. */
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

/** The same error with each text cut to its stored length. */
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

/** The first errors, as many as are stored. If there are more, `rest` makes the one that stands for the others. */
export function firstErrors<Listed>(errors: readonly Listed[], rest: (count: number) => Listed): readonly Listed[] {
  let left = LIMITS.errorListCharacters;
  const fits = errors.findIndex((error) => {
    left -= JSON.stringify(error).length;
    return left < 0;
  });
  return fits === -1 ? errors : [...errors.slice(0, fits), rest(errors.length - fits)];
}

/** `instanceof` for a value that environment code threw. Never throws: false if a proxy's trap throws. */
export function isError<Kind extends Error>(
  thrown: unknown,
  kind: abstract new (...args: never[]) => Kind,
): thrown is Kind {
  return readOr(false, () => thrown instanceof kind);
}

/** Whether the error ends the rollout because the time of the whole rollout is over. Never throws. */
export function endsTheWhole(thrown: unknown): boolean {
  return isError(thrown, StageTimeoutError) && readOr(false, () => thrown.whole === true);
}

/** The message of a thrown value, which may be any value. Never throws. */
export function messageOf(thrown: unknown): string {
  return thrownMessage(thrown) ?? `no message (${typeof thrown})`;
}

/** The same; null if the value has no readable message, or an error's message is not a text. Never throws. */
export function thrownMessage(thrown: unknown): string | null {
  return readOr(null, () => {
    if (!isError(thrown, Error)) return String(thrown);
    const message: unknown = thrown.message;
    return typeof message === "string" ? message : null;
  });
}

/** The engine's stack of an error; "" if there is none. Never throws. */
export function stackOf(thrown: unknown): string {
  return readOr("", () => (isError(thrown, Error) ? String(thrown.stack ?? "") : ""));
}

/** The name of an error, or the type of another value. Never throws. */
export function nameOf(thrown: unknown): string {
  return readOr("Error", () => String(isError(thrown, Error) ? thrown.name : typeof thrown));
}

function causeOf(thrown: unknown): unknown {
  return readOr(undefined, () => (isError(thrown, Error) ? thrown.cause : undefined));
}

/** Reads from a value that may be anything: its getters may be environment code, and may throw. */
function readOr<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** The failure class of a rollout that ended with this error of its environment. */
export function environmentFailure({ error }: SerializedError): FailureClass {
  return error === "StageTimeoutError" ? "timeout" : "environment";
}

/** Wraps an error of environment code, unless it already is an error of the library. */
export function asEnvError(thrown: unknown, where: string): RolloutError {
  if (isError(thrown, RolloutError)) return thrown;
  return new EnvError(`${where}: ${messageOf(thrown)}`, { cause: thrown });
}

function causesOf(thrown: unknown): { name: string; message: string }[] {
  const chain: { name: string; message: string }[] = [];
  let link: unknown = thrown;
  // A cycle of causes would never end; eight links are enough to explain any error.
  while (link !== undefined && link !== null && chain.length < 8) {
    const message = shortText(messageOf(link), LIMITS.errorCharacters);
    chain.push({ name: shortText(nameOf(link), LIMITS.nameCharacters), message });
    link = causeOf(link);
  }
  return chain;
}
