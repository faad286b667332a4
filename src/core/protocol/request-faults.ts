/** What is wrong with a request for a run, as its environment sees it: the same words before a boot and from the API. */
import type { ErrorCode } from "../../contract/api-error.ts";
import { formatPath } from "../field-path.ts";
import type { ArgumentsFault } from "./environment-code.ts";

export interface RequestFault {
  readonly code: ErrorCode;
  readonly message: string;
  /** The field at fault. */
  readonly param: string;
}

export function argumentsFault({ kind, path, message }: ArgumentsFault): RequestFault {
  const param = formatPath(["environment_args", ...path]);
  if (kind === "unknown") return { code: "unknown_field", message: `${param} is not a known field`, param };
  const reason = kind === "missing" ? "is required" : (message ?? "does not fit the environment");
  return { code: "invalid_request", message: `${param}: ${reason}`, param };
}

/** `error`: what its own code threw. */
export function unbuiltFault(id: string, error: string): RequestFault {
  const message = `${id} cannot be built from these arguments: ${error}`;
  return { code: "invalid_request", message, param: "environment_args" };
}

/**
 * The judges of the rubric and of the request must be the same: a judge with a misspelt name would never be called.
 * `kept`: names of judges that the request takes over from another run.
 */
export function judgesFault(
  id: string,
  asked: readonly string[],
  given: readonly string[],
  kept: readonly string[] = [],
): RequestFault | null {
  const missing = asked.find((name) => !given.includes(name) && !kept.includes(name));
  if (missing !== undefined) {
    const message = `${id} needs the judge ${missing}: set {"endpoint": …, "model": …}`;
    return { code: "missing_judge", message, param: `judges.${missing}` };
  }
  const unknown = given.find((name) => !asked.includes(name));
  if (unknown === undefined) return null;
  const has = asked.length === 0 ? "it has none" : `it has ${asked.join(", ")}`;
  return { code: "unknown_field", message: `${id} has no judge called ${unknown}: ${has}`, param: `judges.${unknown}` };
}
