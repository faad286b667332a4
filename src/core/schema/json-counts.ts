/** Counts the contents of a JSON text before it is parsed, because parsing alone may block the process for too long. */

export interface JsonCounts {
  /** Counted as by `holdsMore`: the lists and objects, and their contents. */
  readonly values: number;
  /** Members of objects. */
  readonly names: number;
}

const [SPACE, QUOTE, COMMA, COLON, BACKSLASH] = [32, 34, 44, 58, 92];
const OPENING: readonly number[] = [91, 123];
const CLOSING: readonly number[] = [93, 125];

/** For a text that is not JSON the counts are meaningless. */
export function countJson(text: string): JsonCounts {
  let [values, names] = [1, 0];
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code <= SPACE) continue;
    // The first item of a list or an object, and each one after a comma.
    if (code === COMMA || (OPENING.includes(before) && !CLOSING.includes(code))) values += 1;
    if (code === COLON) names += 1;
    if (code === QUOTE) at = endOfString(text, at);
    before = code;
  }
  return { values, names };
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
