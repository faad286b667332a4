/** Replies: as JSON, and what the API said when it refused, as an exception. */
import type { ApiError, ErrorCode, ErrorDetails } from "../contract/api-error.ts";

/** Characters of a reply nobody can read that are shown. */
const QUOTED = 200;

type Refusal = Omit<ApiError["error"], "code"> & { readonly code: ErrorCode | "unreadable" };

/** The API answered with an error. `code` is `unreadable` when the reply was none of the API's own. */
export class ApiRequestError extends Error {
  override readonly name = "ApiRequestError";
  readonly status: number;
  readonly code: ErrorCode | "unreadable";
  /** The field at fault, as a path; null when no single one is. */
  readonly param: string | null;
  readonly type: string;
  /** What a program may go on with: the step to ask for, the version that is published, the money that is missing. */
  readonly details: ErrorDetails;
  /** What to quote when you ask whoever runs the platform. */
  readonly requestId: string | null;
  /** How long the server asked us to stay away; null when it did not say. */
  readonly retryAfterMs: number | null;

  constructor(status: number, refusal: Refusal, reply: { requestId: string | null; retryAfterMs: number | null }) {
    super(refusal.message);
    this.status = status;
    this.code = refusal.code;
    this.param = refusal.param;
    this.type = refusal.type;
    const { next_step, published, epoch, shortfall_micros, budget_id } = refusal;
    this.details = {
      ...(next_step !== undefined && { next_step }),
      ...(published !== undefined && { published }),
      ...(epoch !== undefined && { epoch }),
      ...(shortfall_micros !== undefined && { shortfall_micros }),
      ...(budget_id !== undefined && { budget_id }),
    };
    this.requestId = reply.requestId;
    this.retryAfterMs = reply.retryAfterMs;
  }
}

/** Reads the body of a reply that is no success. */
export async function requestErrorOf(reply: Response): Promise<ApiRequestError> {
  return new ApiRequestError(reply.status, refusalOf(reply.status, await reply.text()), {
    requestId: reply.headers.get("x-request-id"),
    retryAfterMs: retryAfterMs(reply.headers.get("retry-after")),
  });
}

/** A reply of status 2xx that is not what the API writes: whoever answers is no Rollcall platform. */
export function unreadableReply(reply: Response, text: string): ApiRequestError {
  const message = `the reply is not from Rollcall: ${text.slice(0, QUOTED)}`;
  const refusal = { code: "unreadable", message, param: null, type: "api_error" } as const;
  const requestId = reply.headers.get("x-request-id");
  return new ApiRequestError(reply.status, refusal, { requestId, retryAfterMs: null });
}

function refusalOf(status: number, text: string): Refusal {
  try {
    const body: { error?: Refusal } | null = JSON.parse(text);
    if (typeof body?.error?.message === "string") return body.error;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const message = `status ${status}: ${text.slice(0, QUOTED)}`;
  return { code: "unreadable", message, param: null, type: "api_error" };
}

/** The header holds seconds, or the date to wait for. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** A reply as JSON. Text that is none comes from something else that listens there. */
export async function readJson<T>(reply: Response): Promise<T> {
  const text = await reply.text();
  return parsed<T>(text, reply);
}

export function parsed<T>(text: string, reply: Response): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw unreadableReply(reply, text);
  }
}
