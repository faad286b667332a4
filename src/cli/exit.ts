/** Defines how a command ends: exit codes, and the errors that carry one. */

import type { ErrorDetails } from "../contract/api-error.ts";
import { DirectoryUnusable } from "../local/directory-unusable.ts";
import { NoEnvironmentPackage } from "../local/environment-package.ts";
import { COMMAND } from "../local/package-root.ts";
import { ApiRequestError } from "../sdk/request-error.ts";

export const EXIT = {
  good: 0,
  /** The command finished, but the result is bad: the run did not complete. */
  bad: 1,
  usage: 2,
  gate: 3,
  unreachable: 4,
  /** A gate that the evidence neither meets nor fails, or a validation that could not check everything. */
  inconclusive: 5,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The object that `--json` prints instead of a result. */
interface Failure extends ErrorDetails {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly type: string;
}

/** Ends the command with this exit code and this message. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exit: ExitCode;
  readonly failure: Failure;

  constructor(exit: ExitCode, failure: Omit<Failure, "param"> & { param?: string | null }) {
    super(failure.message);
    this.exit = exit;
    this.failure = { ...failure, param: failure.param ?? null };
  }
}

/** The command was called wrongly. `param` names the flag. */
export function usageError(message: string, param: string | null = null): CommandError {
  return new CommandError(EXIT.usage, {
    code: "invalid_request",
    message,
    param,
    type: "invalid_request_error",
  });
}

export function unreachable(message: string, cause: unknown): CommandError {
  const why = cause instanceof Error ? `: ${reasonOf(cause)}` : "";
  return new CommandError(EXIT.unreachable, {
    code: "unreachable",
    message: message + why,
    type: "connection_error",
  });
}

/** `goOn` says how to continue what was started. */
export function interruption(goOn = ""): CommandError {
  return new CommandError(EXIT.interrupted, {
    code: "interrupted",
    message: `interrupted${goOn}`,
    type: "interrupted",
  });
}

/** `signal` was aborted by Ctrl-C or by --timeout. */
export function endBy(signal: AbortSignal, goOn?: string): CommandError {
  return isNamed(signal.reason, "TimeoutError") ? timeIsUp(goOn) : interruption(goOn);
}

function timeIsUp(goOn = ""): CommandError {
  return new CommandError(EXIT.bad, {
    code: "timeout",
    message: `the time of --timeout is over${goOn}`,
    type: "timeout",
  });
}

/** The CommandError for a failure. An unexpected error keeps its stack for the report on stderr. */
export function asCommandError(thrown: unknown): CommandError {
  if (thrown instanceof CommandError) return thrown;
  if (thrown instanceof FailedOn) {
    const { cause, place } = thrown;
    if (cause instanceof ApiRequestError) return fromApi(cause, place.profile);
    return unreachable(`the platform at ${place.url} does not answer`, cause);
  }
  if (thrown instanceof ApiRequestError) return fromApi(thrown, null);
  if (thrown instanceof NoEnvironmentPackage) return usageError(thrown.message, "environment");
  if (thrown instanceof DirectoryUnusable) {
    const { code, message } = thrown;
    return new CommandError(EXIT.unreachable, { code, message, type: "platform_error" });
  }
  // The messages of `parseArgs` already name the flag.
  if (thrown instanceof TypeError && "code" in thrown && isParseCode(thrown.code)) {
    return usageError(thrown.message);
  }
  if (isUnanswered(thrown)) return unreachable("the platform does not answer", thrown);
  if (isNamed(thrown, "AbortError")) return interruption();
  if (isNamed(thrown, "TimeoutError")) {
    return unreachable("the platform does not answer in time", undefined);
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new CommandError(EXIT.bad, { code: "internal", message, type: "internal_error" });
}

/** The platform and the profile that a command used, for the advice in an error. */
interface Place {
  readonly url: string;
  /** The profile of the key; null for the key of ROLLCALL_API_KEY or of the state directory. */
  readonly profile: string | null;
}

/** A platform refused a request or did not answer; it holds which platform that was. */
class FailedOn extends Error {
  override readonly name = "FailedOn";
  readonly place: Place;
  override readonly cause: ApiRequestError | TypeError;

  constructor(place: Place, cause: ApiRequestError | TypeError) {
    super(cause.message);
    this.place = place;
    this.cause = cause;
  }
}

/** The same failure with its platform, if that helps to say what to do. */
export function failedOn({ url, profile }: Place, thrown: unknown): unknown {
  const helps = thrown instanceof ApiRequestError || isUnanswered(thrown);
  return helps ? new FailedOn({ url, profile }, thrown) : thrown;
}

function isUnanswered(thrown: unknown): thrown is TypeError {
  return thrown instanceof TypeError && thrown.message === "fetch failed";
}

function fromApi(error: ApiRequestError, profile: string | null): CommandError {
  const { status, code } = error;
  const theirs = status >= 500 || status === 429 || code === "unreadable";
  return new CommandError(theirs ? EXIT.unreachable : EXIT.usage, {
    code,
    message: error.message + hintOf(error, profile),
    param: error.param,
    type: error.type,
    ...error.details,
  });
}

type Hinted = Pick<ApiRequestError, "code" | "param"> & Partial<Pick<ApiRequestError, "status" | "requestId">>;

/** What the user may do about a refused request. */
export function hintOf({ status = 400, code, param, requestId = null }: Hinted, profile: string | null = null): string {
  if (code === "unreadable") return "; is that the address of a Rollcall platform?";
  if (code === "missing_judge") return `, or --judge ${param?.replace(/^judges\./, "") ?? "NAME"}=MODEL@ENDPOINT`;
  if (param === "turn" && status === 400) return "; --turn is this index plus 1";
  if (status === 401 && profile !== null) return `; log in again: ${COMMAND} login --profile ${profile}`;
  if (status === 401) return "; ROLLCALL_API_KEY must hold a key of this platform";
  if (status === 403) return `; ${COMMAND} whoami shows the key's scopes`;
  if (param === "Rollcall-Project" && status === 404) return `; ${COMMAND} project list lists the projects`;
  if (param === "Rollcall-Project") return ", with --project NAME or ROLLCALL_PROJECT";
  return status >= 500 && requestId !== null ? ` (request ${requestId})` : "";
}

/** An aborted call rejects with a DOMException, or, in Node's own modules, with a plain Error. */
function isNamed(thrown: unknown, name: string): boolean {
  return thrown instanceof Error && thrown.name === name;
}

function isParseCode(code: unknown): boolean {
  return typeof code === "string" && code.startsWith("ERR_PARSE_ARGS");
}

function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
