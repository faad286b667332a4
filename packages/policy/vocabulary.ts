/**
 * The policy's tokens, by id. The order is part of the weights: a change here needs `npm run pretrain`.
 *
 * Invariants. Specials are ids and never come from text. Every printable ASCII character and the newline is a piece, so
 * such a text needs no bytes. Any other byte is two nibbles. The size is a multiple of 8, for the GEMM.
 */

const SPECIALS = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"];

/** Hermes' tool call, and the sentences of the environments in the demo: few tokens are few steps. */
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

/** Ids of the specials, in the order above; 0 pads what others batch. */
export const SYSTEM = 1;
export const USER = 2;
export const ASSISTANT = 3;
export const TOOL = 4;
export const END = 5;

/** The first piece; every id below it is a special. */
export const FIRST_PIECE = SPECIALS.length;
/** What text is cut into. */
export const PIECES: readonly string[] = [...PHRASES, ...NUMBERS, ...CHARACTERS];
/** The id of nibble 0; the other fifteen follow. */
export const FIRST_NIBBLE = FIRST_PIECE + PIECES.length;
/** Every token's name. */
export const TOKENS: readonly string[] = [...SPECIALS, ...PIECES, ...NIBBLES];
export const VOCABULARY_SIZE = TOKENS.length;
