/**
 * Reads errors in replies of status 200: OpenRouter and TGI send them, any server does so in the middle of a stream,
 * and some platforms do so for every error. Shapes: OpenAI's `error`, a text as `error` (TGI), a list of one (Gemini),
 * `detail` (FastAPI), `message` with `code` (vLLM before 0.10, DashScope), `error_msg` (Baidu), `base_resp` (MiniMax),
 * `errors` (Cloudflare). Sources: docs/endpoints.md.
 */
import { isRecord } from "../../contract/json.ts";
import { shortText } from "../../contract/shown-text.ts";

export interface ReplyError {
  /** The HTTP status that fits the error; null if the error names none. */
  readonly status: number | null;
  /** The error in OpenAI's shape, as a refused call would have it. */
  readonly error: Readonly<Record<string, unknown>> & { readonly message: string };
}

const LONGEST_WORDS = 4000;
type Members = Readonly<Record<string, unknown>>;

/** Statuses of errors that have only a word. Sources: OpenAI's and Anthropic's error types; gRPC's codes. */
const STATUS_OF: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid_request_error: 400,
    bad_request: 400,
    badrequesterror: 400,
    validation: 400,
    invalid_argument: 400,
    context_length_exceeded: 400,
    authentication_error: 401,
    invalid_api_key: 401,
    unauthenticated: 401,
    insufficient_quota: 429,
    permission_error: 403,
    permission_denied: 403,
    not_found_error: 404,
    model_not_found: 404,
    request_too_large: 413,
    rate_limit_error: 429,
    rate_limit_exceeded: 429,
    resource_exhausted: 429,
    overloaded: 503,
    overloaded_error: 503,
    unavailable: 503,
    server_error: 500,
    api_error: 500,
    internal: 500,
    // DashScope: help.aliyun.com/zh/model-studio/error-code. The part after a point is a subtype.
    invalidapikey: 401,
    accessdenied: 403,
    modelnotfound: 404,
    invalidparameter: 400,
    datainspectionfailed: 400,
    throttling: 429,
    internalerror: 500,
  }),
);

/** Codes of MiniMax's `base_resp`, except moderation: platform.minimax.io/docs/api-reference/errorcode. */
const STATUS_OF_MINIMAX: ReadonlyMap<unknown, number> = new Map([
  ...[1000, 1001, 1024, 1033].map((code) => [code, 500] as const),
  ...[1002, 1039, 1041, 2045, 2056].map((code) => [code, 429] as const),
  ...[1004, 2049].map((code) => [code, 401] as const),
  [1008, 402],
  [2013, 400],
]);

/** The error in a reply of status 200; null if there is none. */
export function errorIn(body: unknown): ReplyError | null {
  const reply = Array.isArray(body) && body.length === 1 ? body[0] : body;
  if (!isRecord(reply)) return null;
  const found = errorOf(reply);
  if (found === null) return null;
  return { status: statusOf(found, reply), error: { ...found, message: errorWords(found) ?? "no reason given" } };
}

/** The message of an error of any shape; null if there is no error. */
export function errorWords(error: unknown): string | null {
  if (Array.isArray(error)) return errorWords(error.find((one) => errorWords(one) !== null));
  if (!isRecord(error)) return isWell(error) ? null : shortText(String(error), LONGEST_WORDS);
  if (isEmptyReply(error)) return null;
  const words = ["message", "msg", "error_msg", "status_msg", "detail", "error", "reason"].map((name) => error[name]);
  const said = words.find((word) => typeof word === "string" && word.trim() !== "");
  const { metadata } = error;
  // OpenRouter's own message is the same for every error of a provider; the provider's message is in `raw`.
  const raw = isRecord(metadata) && typeof metadata["raw"] === "string" ? `: ${metadata["raw"]}` : "";
  return shortText(typeof said === "string" ? said + raw : JSON.stringify(error), LONGEST_WORDS);
}

const ALL_IS_WELL = /^(?:0|200|ok|success|succeeded|none|null|)$/i;

/** Some servers send an error with every reply: an empty one, or one that reports success. */
function isEmptyReply(error: Members): boolean {
  const { code, message } = error;
  return (code !== undefined && isWell(code) && isWell(message)) || Object.values(error).every(isWell);
}

function isWell(value: unknown): boolean {
  return !value || ALL_IS_WELL.test(String(value).trim());
}

/** `error` is enough by itself; the other shapes count only in a reply without choices. */
function errorOf(reply: Members): Members | null {
  const { error, choices } = reply;
  const listed: unknown = Array.isArray(error) ? error.find((one) => errorWords(one) !== null) : error;
  if (isRecord(listed) && !isEmptyReply(listed)) return listed;
  if (typeof listed === "string" && !isWell(listed)) return { ...reply, error: undefined, message: listed };
  if (listed === true || reply["object"] === "error") return { ...reply, error: undefined };
  return Array.isArray(choices) && choices.length > 0 ? null : errorInPlace(reply);
}

/** An error of the other shapes, in a reply that has nothing else. */
function errorInPlace(reply: Members): Members | null {
  const { errors, detail, base_resp: base } = reply;
  if (isRecord(base) && base["status_code"] !== 0) return { ...base, code: STATUS_OF_MINIMAX.get(base["status_code"]) };
  if (Array.isArray(errors) && isRecord(errors[0])) return errors[0];
  if (typeof detail === "string" && !isWell(detail)) return { ...reply, message: detail };
  if (Array.isArray(detail) && isRecord(detail[0])) return detail[0];
  const said = [reply["message"], reply["error_msg"], reply["msg"]].find((word) => typeof word === "string");
  // The chunk with the usage has no choices, and some servers report success with each chunk.
  return said === undefined || isWell(said) ? null : reply;
}

function statusOf(error: Members, reply: Members): number | null {
  const codes = [error["code"], error["status"], error["http_status"], error["status_code"], reply["code"]];
  const status = codes.map(statusIn).find((code) => code >= 400 && code < 600);
  if (status !== undefined) return status;
  const words = [error["code"], error["type"], error["status"], error["error_type"], reply["error_type"]];
  for (const word of words) {
    const known = typeof word === "string" ? STATUS_OF.get(word.toLowerCase().replace(/\..*$/, "")) : undefined;
    if (known !== undefined) return known;
  }
  return null;
}

/** A number, or the number at the start of a text: `429 Too Many Requests`. */
function statusIn(code: unknown): number {
  return Number(/^\d{3}(?!\d)/.exec(String(code))?.[0] ?? Number.NaN);
}
