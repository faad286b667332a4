/**
 * Refusals, and the one function that makes replies from them.
 *
 * Invariants. Every reply that is not a success has the body `{error: {code, message, param, type}}`, with all four
 * members, unless its operation has a form of its own. The status follows from the code, by a complete table; a route may choose a more specific one (405, 415). An
 * unexpected exception becomes `internal` with a fixed message: nothing of it reaches a caller.
 */
import type * as z from "zod";
import { type ApiError, type ErrorCode, STATUS_OF } from "../../contract/api-error.ts";
import { quotedText } from "../../contract/shown-text.ts";
import { issueText } from "../../core/schema/issues.ts";
import type { Refusal as Failure, Result } from "../messages/refusal.ts";
import type { RefusalForm } from "./operation.ts";

/** How many seconds to wait before a retry, for the codes for which waiting helps. */
const RETRY_AFTER_S: Partial<Record<ErrorCode, number>> = { in_progress: 1, rate_limited: 1, unavailable: 2 };

const MESSAGE_CHARACTERS = 1000;
const PARAM_CHARACTERS = 300;

/** Thrown when a request is refused; the app turns it into a reply. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly failure: Failure;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(failure: Failure, narrower: { status?: number; headers?: Readonly<Record<string, string>> } = {}) {
    super(failure.message);
    this.failure = failure;
    this.status = narrower.status ?? STATUS_OF[failure.code][0];
    this.headers = narrower.headers ?? {};
  }
}

/** The value, or a thrown refusal with the reason. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Refusal(result.error);
}

/** `form`: that of the operation that was asked for, if it has one of its own. */
export function refusalReply({ failure, status, headers }: Refusal, form?: RefusalForm): Response {
  const { code, param: named, details } = failure;
  // Either may repeat what was sent.
  const message = quotedText(failure.message, MESSAGE_CHARACTERS);
  const param = named === null ? null : quotedText(named, PARAM_CHARACTERS);
  const body: ApiError = { error: { code, message, param, type: STATUS_OF[code][1], ...details } };
  const wait = RETRY_AFTER_S[code];
  return Response.json(form?.bodyOf(body.error) ?? body, {
    status,
    headers: wait === undefined ? headers : { "retry-after": String(wait), ...headers },
  });
}

/** The refusal for any unexpected error. */
export function internalRefusal(): Refusal {
  const message = "Something failed on our side. Quote the x-request-id of this reply.";
  return new Refusal({ code: "internal", message, param: null });
}

/** The issues that zod found, as one refusal. */
export function refusalOfIssues(error: z.ZodError, value: unknown): Refusal {
  return new Refusal(issueText(error, value));
}
