/** Parses replies as JSON, and errors of the API as exceptions. */
import type { ApiError, ErrorCode, ErrorDetails } from "../contract/api-error.ts";

/** Maximal characters of an unreadable reply in an error. */
const QUOTED = 200;

type Refusal = Omit<ApiError["error"], "code"> & { readonly code: ErrorCode | "unreadable" };

/** The API replied with an error. `code` is `unreadable` if the reply did not come from the API. */
export class ApiRequestError extends Error {
  override readonly name = "ApiRequestError";
  readonly status: number;
  readonly code: ErrorCode | "unreadable";
  /** The path of the field at fault; null if there is no single one. */
  readonly param: string | null;
  readonly type: string;
  /** Data for programs: the step to request, the published version, the missing money. */
  readonly details: ErrorDetails;
  /** Quote it in questions to the operator of the platform. */
  readonly requestId: string | null;
  /** The wait that the server requested; null if it requested none. */
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

/** Reads the body of a reply whose status is not a success. */
export async function requestErrorOf(reply: Response): Promise<ApiRequestError> {
  return new ApiRequestError(reply.status, refusalOf(reply.status, await reply.text()), {
    requestId: reply.headers.get("x-request-id"),
    retryAfterMs: retryAfterMs(reply.headers.get("retry-after")),
  });
}

/** A reply of status 2xx that the API cannot have written: another server answered. */
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

/** The header has seconds, or the date to wait for. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** Parses a reply as JSON. If that fails, another server answered. */
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
