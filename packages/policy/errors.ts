/** Refusals in vLLM's shape: `{"error": {message, type, param, code}}`, where `code` is the HTTP status as a number. */

const TYPES = {
  400: "BadRequestError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  405: "MethodNotAllowedError",
  413: "RequestTooLargeError",
  500: "InternalServerError",
} as const;
type Status = keyof typeof TYPES;

/** A request that is answered with an error. The message says what to change. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: Status;
  /** The field of the request that is wrong. */
  readonly param: string | null;

  constructor(status: Status, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}

/** What no handler foresaw is a 500 with its message. */
export function errorBody(thrown: unknown): ErrorBody {
  const error =
    thrown instanceof RequestError
      ? thrown
      : new RequestError(500, thrown instanceof Error ? thrown.message : String(thrown));
  const { message, status, param } = error;
  return { error: { message, type: TYPES[status], param, code: status } };
}

/** In vLLM's words, which clients match to tell truncation from a mistake. */
export function contextOverflow(context: number, prompt: number, completion: number): RequestError {
  return new RequestError(
    400,
    `This model's maximum context length is ${context} tokens. However, you requested ` +
      `${prompt + completion} tokens (${prompt} in the messages, ${completion} in the completion). ` +
      "Please reduce the length of the messages or completion.",
    "input_tokens",
  );
}
