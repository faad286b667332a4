/**
 * The policy's tokens, and the conversion of text to token ids and back.
 *
 * Invariants: the order of the tokens is part of the weights: a change here needs `npm run pretrain`. Every printable
 * ASCII character and the newline is a piece, so such a text needs no byte tokens; any other byte is two nibbles. The
 * size of the vocabulary is a multiple of 8, for the GEMM. No text encodes to a special: `<|end|>` in a user's message
 * is seven characters. The longest piece is matched first, so a text has exactly one encoding; other sampled ids ("u",
 * "p" for "up") decode to the same text, but encoding does not return them. `decode(encodeText(text))` is `text` with
 * lone surrogates replaced by U+FFFD.
 */

const SPECIALS = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"];

/** Hermes' tool call format, and the sentences of the demo's environments: fewer tokens mean fewer steps. */
const PHRASES = [
  ['<tool_call>{"name": "', '", "arguments": {"', "}}</tool_call>", '"}}</tool_call>'],
  ["What is ", " + ", " - ", " * ", "add", "subtract", "multiply", 'a": ', ', "b": '],
  ["I am thinking of a whole number from 1 to ", ". Find it with the guess tool."],
  ["guess", 'number": ', "higher, ", "lower, ", " to ", "correct"],
  ["Walk from ", ", ", "You are at ", "You have arrived.", "move", 'direction": "'],
  ["up", "down", "left", "right"],
  ["Reverse: "],
].flat();

const NUMBERS = Array.from({ length: 90 }, (_, index) => String(10 + index));
const CHARACTERS = ["\n", ...Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))];
const NIBBLES = Array.from({ length: 16 }, (_, nibble) => `<0x${nibble.toString(16)}>`);

/** The ids of the specials, in the order above; 0 is the padding in batches. */
export const SYSTEM = 1;
export const USER = 2;
export const ASSISTANT = 3;
export const TOOL = 4;
export const END = 5;

/** The first piece; every id below it is a special. */
export const FIRST_PIECE = SPECIALS.length;

/** The pieces that text is split into. */
export const PIECES: readonly string[] = [...PHRASES, ...NUMBERS, ...CHARACTERS];

/** The id of nibble 0; the other fifteen follow. */
export const FIRST_NIBBLE = FIRST_PIECE + PIECES.length;

/** Every token's name. */
export const TOKENS: readonly string[] = [...SPECIALS, ...PIECES, ...NIBBLES];

export const VOCABULARY_SIZE = TOKENS.length;

/** The longest first, so that the first match is the longest. */
const PIECES_BY_FIRST_CHARACTER = Map.groupBy(
  PIECES.map((text, index) => ({ text, id: FIRST_PIECE + index })).sort((a, b) => b.text.length - a.text.length),
  ({ text }) => text.charAt(0),
);
const utf8 = new TextEncoder();
const REPLACEMENT = "\ufffd";

export function encodeText(text: string): number[] {
  const ids: number[] = [];
  let at = 0;
  while (at < text.length) {
    const piece = PIECES_BY_FIRST_CHARACTER.get(text.charAt(at))?.find((one) => text.startsWith(one.text, at));
    if (piece !== undefined) {
      ids.push(piece.id);
      at += piece.text.length;
      continue;
    }
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    for (const byte of utf8.encode(character)) ids.push(FIRST_NIBBLE + (byte >> 4), FIRST_NIBBLE + (byte & 15));
    at += character.length;
  }
  return ids;
}

/** The text of these ids. Specials have none; invalid UTF-8 becomes U+FFFD. */
export function decode(ids: readonly number[]): string {
  const decoder = new IncrementalDecoder();
  return ids.map((id) => decoder.push(id)).join("") + decoder.end();
}

/** The token's own name: its text, `<|end|>` for a special, `<0xa>` for half a byte. Empty for an id out of range. */
export function tokenText(id: number): string {
  return TOKENS[id] ?? "";
}

/** The UTF-8 bytes of a token's text. A special has those of its name, and half a byte has none. */
export function tokenBytes(id: number): number[] {
  return id >= FIRST_NIBBLE ? [] : [...utf8.encode(tokenText(id))];
}

/**
 * Decodes token by token. Holds back bytes that may be the beginning of a longer character, until the rest or `end`
 * comes.
 */
export class IncrementalDecoder {
  readonly #bytes = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  #high: number | null = null;
  #pending = false;

  /** The text that is complete with this token, often none. */
  push(id: number): string {
    if (id < FIRST_NIBBLE) return this.end() + (id < FIRST_PIECE ? "" : tokenText(id));
    this.#pending = true;
    const nibble = id - FIRST_NIBBLE;
    if (this.#high === null) {
      this.#high = nibble;
      return "";
    }
    const byte = this.#high * 16 + nibble;
    this.#high = null;
    return this.#bytes.decode(Uint8Array.of(byte), { stream: true });
  }

  /** Returns what was held back, and resets the decoder. */
  end(): string {
    if (!this.#pending) return "";
    const half = this.#high === null ? "" : REPLACEMENT;
    this.#high = null;
    this.#pending = false;
    return this.#bytes.decode() + half;
  }
}
