/**
 * Reads a JSON body whose member `metrics` may hold what JSON has no words for: Python's `json.dumps` writes NaN and
 * the infinities bare. Such a metric is null, and named.
 *
 * Invariants. Only the values of the outermost object's `metrics` are read so; anywhere else the same text is no JSON,
 * as everywhere. What is JSON is read by `JSON.parse` and nothing else. The work is linear in the length of the text.
 */
import { isRecord, type Json } from "../../contract/json.ts";

export interface ReadMetrics {
  readonly body: Json;
  /** Names of the metrics that were NaN, infinite, or too large for a number. */
  readonly not_finite: readonly string[];
}

const BARE = new Set(["NaN", "Infinity", "-Infinity"]);
/** JSON that is read as Infinity. */
const NOT_FINITE = "1e999";

/** Throws a SyntaxError where the text is no JSON otherwise. */
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

/** Null where there is no bare NaN or Infinity among the metrics. */
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

/** Where the token at `at` ends: a text in quotes, a word, or a single mark or space. */
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

/** How deep a token is, and under which name of the outermost object. */
class Place {
  #depth = 0;
  #name = "";
  #last = "";
  /** What the mark before the token is: a value follows a colon. */
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
