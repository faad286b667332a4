/** JSON objects in the middle of prose, found by their braces. Work is bounded: a reply may be all braces. */

export interface FoundObject {
  readonly value: Readonly<Record<string, unknown>>;
  /** The key stands in it more than once, at whatever depth: which of them is meant nobody knows. */
  readonly repeated: boolean;
}

/** Characters looked at, those looked at again included. */
const MOST_STEPS = 1_000_000;

/** Outermost objects that carry `key` of their own, in order; null when they cannot be told within the work allowed. */
export function jsonObjectsWith(key: string, text: string): FoundObject[] | null {
  const found: FoundObject[] = [];
  let steps = 0;
  for (let at = text.indexOf("{"); at !== -1; ) {
    const end = endOfObject(text, at);
    steps += (end ?? text.length) - at;
    if (steps > MOST_STEPS) return null;
    const object = end === null ? null : objectWith(key, text.slice(at, end));
    if (object !== null) found.push(object);
    at = text.indexOf("{", object === null ? at + 1 : (end ?? at + 1));
  }
  return found;
}

function objectWith(key: string, text: string): FoundObject | null {
  const value = parsed(text);
  if (value === null || !Object.hasOwn(value, key)) return null;
  // Inside a JSON text a quote is escaped, so only keys look like this.
  const keys = text.split(`"${key}"`).slice(1);
  const repeated = keys.filter((rest) => rest.trimStart().startsWith(":")).length > 1;
  return { value, repeated };
}

/** Behind the brace that closes the one at `start`; null when none does. */
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

/** Where the quote is that closes the one at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch (thrown) {
    // Braces of prose or of code.
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}
