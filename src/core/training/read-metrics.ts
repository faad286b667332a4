/**
 * Parses a JSON body whose member `metrics` may have values that JSON cannot express: Python's `json.dumps` writes NaN
 * and the infinities as bare words. Such a metric becomes null, and its name is reported.
 *
 * Invariants. Only the values of the outermost object's `metrics` are parsed so; in other places the words are invalid,
 * as always in JSON. Valid JSON is parsed only by `JSON.parse`. The work is linear in the length of the text.
 */
import { isRecord, type Json } from "../../contract/json.ts";

export interface ReadMetrics {
  readonly body: Json;
  /** Names of the metrics that were NaN, infinite, or too large for a number. */
  readonly not_finite: readonly string[];
}

const BARE = new Set(["NaN", "Infinity", "-Infinity"]);
/** A JSON number that is parsed as Infinity. */
const NOT_FINITE = "1e999";

/** Throws SyntaxError if the text is otherwise not JSON. */
export function readMetrics(text: string): ReadMetrics {
  const body = parse(text);
  const metrics = isRecord(body) ? body["metrics"] : null;
  if (!isRecord(body) || !isRecord(metrics)) return { body, not_finite: [] };
  const odd = (value: unknown) => typeof value === "number" && !Number.isFinite(value);
  const not_finite = Object.keys(metrics).filter((name) => odd(metrics[name]));
  if (not_finite.length === 0) return { body, not_finite };
  const finite = Object.entries(metrics).map(([name, value]) => [name, odd(value) ? null : value]);
  return { body: { ...body, metrics: Object.fromEntries(finite) }, not_finite };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const readable = withoutBare(text);
    if (readable === null) throw thrown;
    return JSON.parse(readable);
  }
}

/** The text with replaced words; null if there is no bare NaN or Infinity among the metrics. */
function withoutBare(text: string): string | null {
  const place = new Place();
  const pieces: string[] = [];
  let kept = 0;
  for (let at = 0; at < text.length; ) {
    const end = tokenEnd(text, at);
    const token = text.slice(at, end);
    if (BARE.has(token) && place.isMetric) {
      pieces.push(text.slice(kept, at), NOT_FINITE);
      kept = end;
    }
    place.pass(token);
    at = end;
  }
  return kept === 0 ? null : [...pieces, text.slice(kept)].join("");
}

/** The end of the token at `at`: a quoted text, a word, or a single punctuation mark or space. */
function tokenEnd(text: string, at: number): number {
  if (text[at] === '"') return textEnd(text, at);
  let end = at;
  while (end < text.length && !'{}[]:,"\t\n\r '.includes(text.charAt(end))) end += 1;
  return Math.max(end, at + 1);
}

function textEnd(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return Math.min(end + 1, text.length);
}

/** The nesting depth of a token, and the member of the outermost object that it is in. */
class Place {
  #depth = 0;
  #name = "";
  #last = "";
  /** The punctuation mark before the token: a value follows a colon. */
  #mark = "";

  get isMetric(): boolean {
    return this.#depth === 2 && this.#name === '"metrics"' && this.#mark === ":";
  }

  pass(token: string): void {
    if (token.trim() === "") return;
    if (token === "{" || token === "[") this.#depth += 1;
    if (token === "}" || token === "]") this.#depth -= 1;
    if (token === ":" && this.#depth === 1) this.#name = this.#last;
    if ("{}[]:,".includes(token)) this.#mark = token;
    this.#last = token;
  }
}
