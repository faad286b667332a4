/**
 * Reads the text of a reply, whole or streamed, as one chat completion. A stream consists of server-sent events with
 * chunks (OpenAI's `chat.completion.chunk`), which are merged into the completion that the same server would have sent
 * whole. The text itself shows which of the two it is; comment lines and blank lines may precede both.
 *
 * Numbers that a double cannot hold keep their digits in the members of a message besides its content, because those
 * are sent back to the server. Sources: the HTML standard on server-sent events; OpenAI's streaming reference;
 * docs/endpoints.md for the behaviour of other servers.
 */
import { mayBeInexact, parseExactJson } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { holdsMore } from "../schema/bounded-lists.ts";
import { usageIn } from "./chat-completion.ts";
import { endingOf, finishWord } from "./finish-reason.ts";
import { type Members, mergeDelta, settleCalls } from "./merge-delta.ts";
import { errorIn, errorWords } from "./reply-error.ts";
import { chunkOfText } from "./text-completion.ts";

/** The completion in a text. Throws SyntaxError and RangeError like `ReplyReader`. */
export function readReplyText(text: string): unknown {
  const reader = new ReplyReader();
  reader.take(text);
  return reader.end();
}

function parseReply(text: string): unknown {
  try {
    return parsePlain(text);
  } catch (thrown) {
    // A text that was cut off is not parsed a second time.
    if (!(thrown instanceof SyntaxError) || !/[}\]]\s*$/.test(text.slice(-100)) || !/NaN|Infinity/.test(text))
      throw thrown;
    return parsePlain(text.replaceAll(STRING_OR_WORD, (found) => (found.startsWith('"') ? found : "null")));
  }
}

/**
 * Python writes numbers that JSON cannot express (in logprobs, times or counts) as words. The pattern also matches
 * strings, to skip them; an unterminated string matches to the end of the text, so that no part is scanned twice.
 */
const STRING_OR_WORD = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\b(?:NaN|Infinity)\b/gs;

function parsePlain(text: string): unknown {
  const reply: unknown = JSON.parse(text);
  if (!mayBeInexact(text) || !isRecord(reply) || !Array.isArray(reply["choices"])) return reply;
  const choices = reply["choices"];
  const held = choices.some((choice) => isRecord(choice) && holdsNumber(choice["message"] ?? choice["delta"]));
  return held ? { ...reply, choices: withExactMessages(choices, parseExactJson(text)) } : reply;
}

function withExactMessages(choices: readonly unknown[], exact: unknown): readonly unknown[] {
  const exactChoices = isRecord(exact) && Array.isArray(exact["choices"]) ? exact["choices"] : [];
  return choices.map((choice, at) => {
    const other: unknown = exactChoices[at];
    if (!isRecord(choice) || !isRecord(other)) return choice;
    const name = isRecord(choice["message"]) ? "message" : "delta";
    const [plain, kept] = [choice[name], other[name]];
    if (!isRecord(plain) || !isRecord(kept)) return choice;
    // Parts are kept as values, and a text has no numbers to lose; a number or an object as content becomes its text.
    const plainContent = typeof plain["content"] === "string" || Array.isArray(plain["content"]);
    return { ...choice, [name]: { ...kept, ...(plainContent && { content: plain["content"] }) } };
  });
}

/** Whether a value has a number, within the number of values that is read at all. */
function holdsNumber(value: unknown): boolean {
  const open: unknown[] = [value];
  for (let count = 0; open.length > 0 && count < LIMITS.valuesPerReply; count += 1) {
    const next = open.pop();
    if (typeof next === "number") return true;
    if (typeof next === "object" && next !== null && !holdsMore(next, LIMITS.valuesPerReply)) {
      open.push(...Object.values(next));
    }
  }
  return false;
}

/** A choice, merged from its chunks. */
interface Choice {
  readonly message: Record<string, unknown>;
  readonly rest: Record<string, unknown>;
}

/** vLLM's lists: each chunk has the ids of its own tokens. */
const ID_LISTS: ReadonlySet<string> = new Set(["token_ids", "prompt_token_ids"]);

const FIELDS: ReadonlySet<string> = new Set(["data", "event", "error", "id", "retry"]);
const MOST_MEMBERS = 100;
/** Memory of a parsed value without its text, and of an object or a list without its members, as characters. */
const VALUE_CHARACTERS = 8;
const HOLDER_CHARACTERS = 24;
/** Names up to this length are those of the format, which all objects share. */
const SHARED_NAME = 32;

/** Takes the pieces of a body as they arrive. */
export class ReplyReader {
  /** The line that has not ended. */
  #line: string[] = [];
  /** The last piece ended in a carriage return; a line feed at the start of the next belongs to it. */
  #afterReturn = false;
  /** Lines outside of events: those of a reply that is not a stream. */
  #plain: string[] = [];
  #data: string[] = [];
  #event = "";
  #streamed = false;
  #done = false;
  #error: unknown = null;
  /** Why an event cannot be parsed. */
  #broken: SyntaxError | RangeError | null = null;
  readonly #reply: Record<string, unknown> = {};
  readonly #choices = new Map<number, Choice>();
  #kept = 0;
  /** Characters of the line that has not ended, and of the lines of the event that has not ended. */
  #open = 0;
  #pending = 0;

  /** The text so far if it is not a stream; null if it is one. */
  get plainText(): string | null {
    return this.#streamed ? null : this.#plain.join("\n");
  }

  /** About how many characters are in memory: a stream repeats its envelope for each token, which is not kept. */
  get kept(): number {
    return this.#kept + this.#open + this.#pending;
  }

  get isStream(): boolean {
    return this.#streamed;
  }

  /** The stream's end mark has come. */
  get isDone(): boolean {
    return this.#done;
  }

  take(piece: string): void {
    const rest = this.#afterReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#afterReturn = piece.endsWith("\r");
    const [first = "", ...others] = rest.split(/\r\n|\n|\r/);
    this.#line.push(first);
    this.#open += first.length;
    for (const next of others) {
      this.#takeLine(this.#line.join(""));
      this.#line = [next];
      this.#open = next.length;
    }
  }

  /**
   * The completion. If the stream broke off, the choice gets an error, because the reply is incomplete. Throws
   * SyntaxError if the text is neither JSON nor a stream of JSON, RangeError if it is nested too deeply.
   */
  end(): unknown {
    this.#takeLine(this.#line.join(""));
    this.#line = [];
    this.#dispatch();
    if (this.#broken !== null) throw this.#broken;
    if (!this.#streamed) return parseReply(this.#plain.join("\n"));
    for (const line of this.#plain.slice(0, MOST_MEMBERS)) this.#takeStray(line);
    if (this.#error !== null) return { ...this.#reply, error: this.#error };
    return { ...this.#reply, choices: [...this.#choices.values()].map((choice) => this.#wholeChoice(choice)) };
  }

  /** Comments begin with a colon; some servers send comments and blank lines to keep a connection open. */
  #takeLine(line: string): void {
    if (line.trim() === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    const field = line.slice(0, colon === -1 ? undefined : colon);
    if (!FIELDS.has(field)) {
      if (colon === 0) return;
      this.#plain.push(line);
      this.#kept += VALUE_CHARACTERS + line.length;
      return;
    }
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") this.#event = value;
    // llama.cpp of 2025 sends the error of a failed stream as a field of its own.
    if (field === "error") this.#event = field;
    if (field !== "data" && field !== "error") return;
    this.#data.push(value);
    this.#pending += VALUE_CHARACTERS + value.length;
    this.#streamed = true;
  }

  #wholeChoice({ message, rest }: Choice): unknown {
    settleCalls(message);
    const ended = this.#done || finishWord(rest["finish_reason"]) !== null;
    return { message, ...(!ended && { error: "the stream ended before the reply did" }), ...rest };
  }

  /** A line outside of the stream's fields may be the error that ended it. */
  #takeStray(line: string): void {
    if (!line.trimStart().startsWith("{")) return;
    try {
      this.#error ??= errorIn(JSON.parse(line))?.error ?? null;
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError || thrown instanceof RangeError)) throw thrown;
    }
  }

  /** Some servers end an event with one line feed, so each line may be an event of its own. */
  #dispatch(): void {
    const [lines, event] = [this.#data, this.#event];
    if (lines.length === 0) return;
    this.#data = [];
    this.#pending = 0;
    this.#event = "";
    const [first = "", ...others] = lines;
    if (others.length > 0 && endsObject(first)) for (const line of lines) this.#takeEvent(line, event);
    else this.#takeEvent(lines.join("\n"), event);
  }

  #takeEvent(text: string, event: string): void {
    const data = text.trim();
    if (data === "[DONE]") this.#done = true;
    const isJson = /^[[{"]/.test(data) && data !== "[DONE]";
    if (event === "error" && !isJson) this.#error ??= { message: data };
    // Data that is not JSON is a keep-alive.
    if (this.#broken !== null || !isJson) return;
    try {
      const parsed = parseReply(data);
      this.#takeParsed(Array.isArray(parsed) && parsed.length === 1 ? parsed[0] : parsed, event);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError || thrown instanceof RangeError)) throw thrown;
      this.#broken = thrown;
    }
  }

  #takeParsed(chunk: unknown, event: string): void {
    const failed = errorIn(chunk);
    if (failed !== null) this.#error ??= { ...failed.error, code: failed.status ?? failed.error["code"] };
    else if (!isRecord(chunk) || event === "error") this.#error ??= chunk;
    else this.#takeChunk(chunk);
  }

  #takeChunk({ choices, usage, x_groq: groq, ...chunk }: Members): void {
    for (const [name, value] of Object.entries(chunk)) {
      if (value === null || this.#reply[name] !== undefined || !isTaken(this.#reply, name)) continue;
      this.#reply[name] = value;
      this.#kept += name.length + charactersOf(value);
    }
    // Groq sends the usage in a member of its own, Moonshot in the choice.
    this.#count(usage ?? (isRecord(groq) ? groq["usage"] : null));
    // The first weights are in the first chunk; the last ones count as the reply's.
    if (chunk["weight_version"] != null) this.#reply["weight_version"] = chunk["weight_version"];
    if (!Array.isArray(choices)) return;
    for (const choice of choices.slice(0, LIMITS.choicesPerReply))
      if (isRecord(choice)) this.#takeChoice(chunkOfText(choice));
  }

  #count(usage: unknown): void {
    if (usage == null || (!isCount(usage) && this.#reply["usage"] !== undefined)) return;
    this.#reply["usage"] = usage;
    this.#kept += charactersOf(usage);
  }

  #takeChoice({ index, delta, message, usage, logprobs, ...chunk }: Members): void {
    const at = typeof index === "number" ? index : 0;
    if (this.#choices.size > LIMITS.choicesPerReply) return;
    const choice = this.#choices.get(at) ?? { message: {}, rest: {} };
    this.#choices.set(at, choice);
    this.#kept += charactersOf(delta) + charactersOf(message) + charactersOf(logprobs);
    this.#count(usage);
    takeMessage(choice, delta, message);
    if (isRecord(logprobs) && Array.isArray(logprobs["content"])) {
      choice.rest["logprobs"] = joinedLogprobs(choice.rest["logprobs"], logprobs["content"]);
    }
    for (const [name, value] of Object.entries(chunk)) {
      if (value === null || !isTaken(choice.rest, name)) continue;
      const before = choice.rest[name];
      // A reply that was broken off or refused stays so, whatever the server sends after that.
      if (name === "finish_reason" && isLost(before)) continue;
      choice.rest[name] = ID_LISTS.has(name) ? joinedList(before, value) : value;
      this.#kept += charactersOf(value);
    }
  }
}

/** The memory of a value, about: many small objects take many times as much as their text. */
function charactersOf(value: unknown): number {
  if (typeof value === "string") return VALUE_CHARACTERS + value.length;
  if (typeof value !== "object" || value === null) return VALUE_CHARACTERS;
  let characters = HOLDER_CHARACTERS;
  if (Array.isArray(value)) {
    for (const item of value) characters += charactersOf(item);
    return characters;
  }
  for (const [name, member] of Object.entries(value)) {
    characters += charactersOf(member) + (name.length > SHARED_NAME ? name.length : 0);
  }
  return characters;
}

function takeMessage(choice: Choice, delta: unknown, message: unknown): void {
  if (isRecord(delta)) {
    const { error, ...piece } = delta;
    mergeDelta(choice.message, piece);
    if (errorWords(error) !== null) choice.rest["error"] ??= error;
  }
  // Some servers end with the whole message, after its pieces or instead of them.
  const { content, tool_calls: calls } = choice.message;
  if (isRecord(message) && isNothing(content) && isNothing(calls)) mergeDelta(choice.message, message);
}

function isNothing(part: unknown): boolean {
  return part === null || part === undefined || part === "" || (Array.isArray(part) && part.length === 0);
}

function isLost(reason: unknown): boolean {
  const ending = endingOf(finishWord(reason));
  return ending === "broken_off" || ending === "refused_by_policy";
}

/** Whether this is a complete usage. The last complete one counts. */
function isCount(usage: unknown): boolean {
  return usageIn({ usage }) !== null;
}

/** The number of members besides OpenAI's is limited. */
function isTaken(object: Members, name: string): boolean {
  return name !== "__proto__" && (name in object || Object.keys(object).length < MOST_MEMBERS);
}

/** Whether a line of data looks like a whole JSON value, by its first and last character. */
function endsObject(line: string): boolean {
  const text = line.trim();
  return text === "[DONE]" || (text.startsWith("{") && text.endsWith("}"));
}

function joinedLogprobs(before: unknown, entries: readonly unknown[]): unknown {
  return { content: joinedList(isRecord(before) ? before["content"] : null, entries) };
}

function joinedList(before: unknown, items: unknown): unknown[] {
  const all: unknown[] = Array.isArray(before) ? before : [];
  if (Array.isArray(items)) for (const item of items) all.push(item);
  return all;
}
