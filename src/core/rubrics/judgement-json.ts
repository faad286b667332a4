/**
 * Finds JSON objects with a given key in a judge's reply, inside of prose.
 *
 * Invariants. An object is parsed strictly. An object that is almost JSON is repaired (jsonrepair) if it has the key
 * once. If that fails it is parsed from its key on: the value is the one after the key. Prose without an opening brace
 * is never parsed, and an object that never closes counts only if nothing but its brackets is missing. A key inside an
 * object that was not parsed makes the result doubtful. Work is bounded: a reply may consist of braces only.
 */
import { JSONRepairError, jsonrepair } from "jsonrepair";

type Fields = Readonly<Record<string, unknown>>;

export interface FoundObject {
  readonly value: Fields;
  /** It has a key more often than allowed: it is unclear which one is meant. */
  readonly repeated: boolean;
}

export interface FoundObjects {
  /** Outermost objects that have the key themselves, in order. */
  readonly objects: readonly FoundObject[];
  /** The key is in an object that could not be parsed. */
  readonly doubtful: boolean;
  /** The text before the first object and after the last. */
  readonly before: string;
  readonly behind: string;
}

interface Place {
  readonly start: number;
  readonly end: number;
}

interface Key extends Place {
  /** First in its object, or in quotation marks after a comma: prose is not written so. */
  readonly sure: boolean;
}

/** Maximal number of examined characters; one that is examined twice counts twice. */
const MOST_STEPS = 1_000_000;
/** Maximal characters of one object that is repaired, and of all of them. */
const LONGEST_REPAIRED = 32 * 1024;
const MOST_REPAIRED = 4 * LONGEST_REPAIRED;

/** Null if the objects cannot be found within the work limit. */
export function jsonObjectsWith(key: string, text: string): FoundObjects | null {
  const keys = keysIn(text, key);
  const objects: (FoundObject & Place)[] = [];
  let [steps, repaired, next] = [0, 0, 0];
  for (let at = text.indexOf("{"); at !== -1; ) {
    const closed = endOfObject(text, at);
    const end = closed ?? text.length;
    steps += end - at;
    if (steps > MOST_STEPS) return null;
    next = skipTo(keys, next, at);
    let object = closed === null ? null : strictObject(text, { start: at, end }, key);
    const only = object === null && repaired < MOST_REPAIRED ? onlyKey(keys, next, end) : null;
    if (only !== null) {
      repaired += end - at;
      object = nearlyObject(text, { start: at, end: closed }, key, only);
    }
    if (object !== null) objects.push(object);
    at = text.indexOf("{", object?.end ?? at + 1);
  }
  return { objects, doubtful: isLeft(keys, objects), ...textAround(objects, text) };
}

function textAround(objects: readonly Place[], text: string): Pick<FoundObjects, "before" | "behind"> {
  return { before: text.slice(0, objects[0]?.start), behind: text.slice(objects.at(-1)?.end ?? text.length) };
}

/** The index of the first key after `at`; the search begins at index `next`. */
function skipTo(keys: readonly Key[], next: number, at: number): number {
  let place = next;
  while ((keys[place]?.start ?? at) < at) place += 1;
  return place;
}

/** The next key, if it is before `end` and the one after it is not. */
function onlyKey(keys: readonly Key[], next: number, end: number): Key | null {
  const [key, other] = keys.slice(next, next + 2);
  return key !== undefined && key.start < end && (other === undefined || other.start >= end) ? key : null;
}

/** Whether a key is outside of the objects. */
function isLeft(keys: readonly Key[], objects: readonly Place[]): boolean {
  let next = 0;
  return keys.some(({ start, sure }) => {
    while ((objects[next]?.end ?? Number.POSITIVE_INFINITY) <= start) next += 1;
    return sure && start < (objects[next]?.start ?? Number.POSITIVE_INFINITY);
  });
}

function strictObject(text: string, { start, end }: Place, key: string): (FoundObject & Place) | null {
  const slice = text.slice(start, end);
  const value = parseObject(slice);
  if (value === null || !Object.hasOwn(value, key)) return null;
  // Inside a JSON string a quote is escaped, so only keys look like this.
  const count = (name: string) => slice.split(`"${name}"`).filter((rest) => /^\s*:/.test(rest)).length;
  return { value, repeated: count(key) > 1 || hasMore(value[key], count), start, end };
}

/** `end`: null if no brace closes the one at `start`. */
function nearlyObject(
  text: string,
  { start, end }: { readonly start: number; readonly end: number | null },
  key: string,
  place: Key,
): (FoundObject & Place) | null {
  for (const stop of end === null ? possibleEnds(text, start, place) : [end]) {
    if (stop - start > LONGEST_REPAIRED) continue;
    for (const near of [text.slice(start, stop), `{${text.slice(place.start, stop)}`]) {
      const value = repairedObject(near, key);
      if (value === null || !isStated(value[key], text.slice(place.end, stop))) continue;
      return { value, repeated: hasMore(value[key], (name) => keysIn(near, name).length), start, end: stop };
    }
  }
  return null;
}

/** Possible ends of an object whose quotation marks are not paired, or whose last brackets are missing. */
function possibleEnds(text: string, start: number, key: Key): number[] {
  const last = text.lastIndexOf("}");
  return [...(last > key.start ? [last + 1] : []), ...(lacksOnlyBrackets(text.slice(start)) ? [text.length] : [])];
}

const FENCE_AT_END = /\n[ \t]*(?:```|~~~)\s*$/;

/** Whether the last value is complete. A number at the very end of the reply may have been cut. */
function lacksOnlyBrackets(rest: string): boolean {
  const said = rest.replace(FENCE_AT_END, "\n");
  if (countOf(said, QUOTE) % 2 === 1) return false;
  return /["'”’\]}]\s*$/.test(said.slice(-100)) || /[\w.]\s+$/.test(said.slice(-100));
}

/** A quote that is not escaped. */
const QUOTE = /\\.|"/gs;

function countOf(text: string, pattern: RegExp): number {
  let count = 0;
  for (const [found] of text.matchAll(pattern)) if (!found.startsWith("\\")) count += 1;
  return count;
}

/** A backslash that is not a JSON escape belongs to LaTeX. */
const BACKSLASH = /\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})|\\/g;
/** Numbers that are not valid in JSON: `7/10`, `7 out of 10`, `+7`, `.7`. */
const NUMBER =
  /((?:verdict|score)["'”’`]?\s{0,9}:\s{0,9})(\+[\d.]{1,20}|\.\d{1,20}|[\d.]{1,20}\s?(?:\/|(?:out )?of)\s?[\d.]{1,20})(?=\s{0,9}[,}\]])/g;

function repairedObject(near: string, key: string): Fields | null {
  const text = near
    .replace(BACKSLASH, (found) => (found.length > 1 ? found : "\\\\"))
    .replace(NUMBER, (_found, before: string, number: string) => `${before}"${number}"`);
  try {
    const value = parseObject(jsonrepair(text));
    return value !== null && Object.hasOwn(value, key) ? value : null;
  } catch (thrown) {
    // Prose, or brackets nested too deeply for the stack.
    if (thrown instanceof JSONRepairError || thrown instanceof RangeError) return null;
    throw thrown;
  }
}

/** Text that may follow a value: the end of its object, a comma, a comment, or another key. */
const AFTER_VALUE =
  /^0{0,20}[.;!]?["'”’`]{0,3}[.;!]?\s*(?:$|[}\])]|\/[/*]|```|~~~|,\s*(?:$|[}\])]|\/[/*])|,?\s*["'“‘`]?[\w -]{1,40}["'”’`]\s*:|,\s*\w{1,40}\s*:)/;

/** A repair may join, unwrap or drop the text after the key: then the value is not what the reply has. */
function isStated(value: unknown, behind: string): boolean {
  if (typeof value === "object") return true;
  const said = behind.slice(0, 1000).replace(/^[\s"'“‘`]{0,100}/, "");
  const text = String(value).trim();
  return said.toLowerCase().startsWith(text.toLowerCase()) && AFTER_VALUE.test(said.slice(text.length));
}

/** Whether there are more ids or scores than entries in a list. */
function hasMore(list: unknown, count: (key: string) => number): boolean {
  return Array.isArray(list) && ["id", "score"].some((key) => count(key) > list.length);
}

/** The places of a key in objects, valid or almost valid. */
function keysIn(text: string, key: string): Key[] {
  const before = `(\\{|[,\\n]|\\*/|["'”’]\\s)\\s{0,100}`;
  const pattern = new RegExp(`${before}(?:(["'“‘\`])${key}["'”’\`]|${key})\\s{0,20}:`, "g");
  const keys: Key[] = [];
  for (const { 0: found, 1: sign = "", 2: quote, index } of text.matchAll(pattern)) {
    const sure = sign === "{" || (sign === "," && quote !== undefined);
    const start = index + found.length - found.slice(sign.length).trimStart().length;
    if (sign === "{" || sign === "," || quote !== undefined) keys.push({ start, end: index + found.length, sure });
  }
  return keys;
}

/** The index after the brace that closes the one at `start`; null if none does. */
function endOfObject(text: string, start: number): number | null {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === "{") depth += 1;
    else if (character === "}") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return null;
}

/** The index of the quote that closes the one at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

function parseObject(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch (thrown) {
    // Braces of prose or code.
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
