/**
 * Reads the error in a reply, in the format of any server: its text, its codes, and the fields it names.
 *
 * Invariant. Only members with the error's own text are read. Parts of the request that a validation repeats (`input`)
 * are ignored. Number of values, depth and length are bounded.
 *
 * Formats. OpenAI's and Azure's `error`, its text alone (TGI, xAI), vLLM's and Mistral's flat body, FastAPI's `detail`,
 * Gemini's list, OpenRouter's `metadata.raw`, MiniMax's `base_resp`, AWS's `Message` and `__type`, watsonx's `errors`,
 * Databricks's `external_model_message`, and plain text.
 */

export interface ErrorWords {
  /** In lower case, on one line, without backslashes. */
  readonly words: readonly string[];
  /** `code` and `type`, in lower case. */
  readonly codes: readonly string[];
  /** The fields of the request that the error is about. */
  readonly fields: readonly string[];
  /** The HTTP status that the error contains, or null. */
  readonly status: number | null;
}

const LONGEST = 4_000;
const MOST_VALUES = 200;
const DEEPEST = 6;

const WORDS = /^(?:message|msg|detail|details|error|errors|raw|reason|title|status_msg|error_?(?:message|msg)|cause)$/i;
const CODES = /^(?:code|type|status|status_code|http_status_code|error_?(?:code|type)|__type)$/i;
const FIELDS = /^(?:param|parameter|loc|field)$/i;
const HOLDERS = /^(?:metadata|base_resp|response|body|data|extensions|external_model_message)$/i;

/** A field that a message names first, as in "Invalid 'stop': …". */
const NAMED_FIRST = /^(?:(?:error|invalid|bad|value|parameter|field|for|of|the)[: ]+){0,4}['"`]([\w.[\]]{1,80})['"`]/;

export function wordsOfError(body: unknown, text: string): ErrorWords {
  const found: Found = { words: [], codes: [], fields: [], status: null, left: MOST_VALUES };
  if (typeof body === "object" && body !== null) visit(found, body, "body", 0);
  else take(found, typeof body === "string" ? body : text, "message", 0);
  for (const words of found.words) found.fields.push(...(NAMED_FIRST.exec(words)?.slice(1) ?? []));
  return found;
}

interface Found extends ErrorWords {
  readonly words: string[];
  readonly codes: string[];
  readonly fields: string[];
  status: number | null;
  /** How many more values may be read. */
  left: number;
}

function visit(found: Found, value: unknown, name: string, depth: number): void {
  found.left -= 1;
  if (found.left < 0 || depth > DEEPEST || value === null || value === undefined) return;
  if (FIELDS.test(name)) found.fields.push(...fieldOf(value));
  else if (typeof value !== "object") take(found, String(value), name, depth);
  else visitMembers(found, value, name, depth + 1);
}

/** The values of a list are read as if they had the list's name. */
function visitMembers(found: Found, holder: object, name: string, depth: number): void {
  if (Array.isArray(holder)) {
    for (const held of holder.slice(0, MOST_VALUES)) visit(found, held, name, depth);
    return;
  }
  for (const [member, held] of Object.entries(holder)) if (isRead(member)) visit(found, held, member, depth);
}

function take(found: Found, value: string, name: string, depth: number): void {
  if (CODES.test(name)) {
    found.codes.push(value.slice(0, LONGEST).toLowerCase());
    found.status ??= statusOf(value);
  } else if (WORDS.test(name)) {
    found.words.push(plain(value));
    visitInner(found, value, depth + 1);
  }
}

/** A gateway may send the error of the server behind it as JSON text. */
function visitInner(found: Found, text: string, depth: number): void {
  if (text.length > LONGEST || !/^\s*[{[]/.test(text)) return;
  try {
    visit(found, JSON.parse(text), "body", depth);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError || thrown instanceof RangeError)) throw thrown;
  }
}

function isRead(member: string): boolean {
  return [WORDS, CODES, FIELDS, HOLDERS].some((names) => names.test(member));
}

/** A field's name, or the path to it: FastAPI sends `["body", "messages", 0, "content"]`. */
function fieldOf(value: unknown): string[] {
  const path = Array.isArray(value)
    ? value
        .slice(0, DEEPEST * 2)
        .map(String)
        .join(".")
    : value;
  return typeof path === "string" && path !== "" ? [path.slice(0, LONGEST)] : [];
}

function statusOf(code: string): number | null {
  return /^[45]\d\d$/.test(code) ? Number(code) : null;
}

/** In a text inside a text, quotes and other characters are escaped once more: `\"`, `\u0027`. */
function plain(text: string): string {
  return text
    .slice(0, LONGEST)
    .replace(/\\+u([0-9a-fA-F]{4})/g, (_escaped, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replace(/\\+[nrt]/g, " ")
    .replace(/\\/g, "")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();
}
