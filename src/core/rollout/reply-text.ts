/**
 * The text of a reply, whole or streamed, as one chat completion. A stream is server-sent events of chunks (OpenAI's
 * `chat.completion.chunk`); what they say is put together into the completion that the same server would have sent whole.
 * Which of the two a text is, it shows itself: comment lines and blank ones may stand before either.
 *
 * Numbers that a double cannot hold keep their digits in the members of a message beside its content, which go back to
 * their server. Sources: the HTML standard on server-sent events; OpenAI's streaming reference; docs/endpoints.md for what
 * other servers do.
 */
import { mayBeInexact, parseExactJson } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { holdsMore } from "../schema/bounded-lists.ts";
import { type Members, mergeDelta } from "./merge-delta.ts";
import { errorWords } from "./reply-error.ts";

/** The completion in a text. Throws SyntaxError and RangeError as `ReplyReader` does. */
export function readReplyText(text: string): unknown {
  const reader = new ReplyReader();
  reader.take(text);
  return reader.end();
}

function parseReply(text: string): unknown {
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
    const name = "message" in choice ? "message" : "delta";
    const [plain, kept] = [choice[name], other[name]];
    if (!isRecord(plain) || !isRecord(kept)) return choice;
    return { ...choice, [name]: { ...kept, ...("content" in plain && { content: plain["content"] }) } };
  });
}

/** Within as much of it as is read at all. */
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

/** What the chunks say of a choice beside its message. */
interface Choice {
  readonly message: Record<string, unknown>;
  readonly rest: Record<string, unknown>;
}

/** Of vLLM: each chunk has those of its own tokens. */
const ID_LISTS: ReadonlySet<string> = new Set(["token_ids", "prompt_token_ids"]);

/** Takes the pieces of a body as they arrive. */
export class ReplyReader {
  /** The line that has begun. */
  #line: string[] = [];
  /** The last piece ended in a carriage return, to which a line feed may belong. */
  #afterReturn = false;
  /** Lines of no event: those of a reply that is no stream. */
  #plain: string[] = [];
  #data: string[] = [];
  #event = "";
  #streamed = false;
  #done = false;
  #error: unknown = null;
  readonly #reply: Record<string, unknown> = {};
  readonly #choices = new Map<number, Choice>();

  /** What was taken, where it is no stream; null where it is one. */
  get plainText(): string | null {
    return this.#streamed ? null : this.#plain.join("\n");
  }

  take(piece: string): void {
    const rest = this.#afterReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#afterReturn = piece.endsWith("\r");
    const [first = "", ...others] = rest.split(/\r\n|\n|\r/);
    this.#line.push(first);
    for (const next of others) {
      this.#takeLine(this.#line.join(""));
      this.#line = [next];
    }
  }

  /**
   * The completion. Of a stream that broke off, the choice has an error: it is half a reply. Throws SyntaxError for what
   * is neither JSON nor a stream of JSON, RangeError for what is nested too deep.
   */
  end(): unknown {
    this.#takeLine(this.#line.join(""));
    this.#line = [];
    this.#dispatch();
    if (!this.#streamed) return parseReply(this.#plain.join("\n"));
    if (this.#error !== null) return { ...this.#reply, error: this.#error };
    return { ...this.#reply, choices: [...this.#choices.values()].map((choice) => this.#wholeChoice(choice)) };
  }

  /** Comments begin with a colon; some servers send them, and blank lines, to keep a connection open. */
  #takeLine(line: string): void {
    const [, field, value = ""] = /^(data|event|id|retry)(?:: ?|$)(.*)/.exec(line) ?? [];
    if (field === "data") {
      this.#data.push(value);
      this.#streamed = true;
    } else if (field === "event") this.#event = value;
    else if (line.trim() === "") this.#dispatch();
    else if (field === undefined && !line.startsWith(":")) this.#plain.push(line);
  }

  #wholeChoice({ message, rest }: Choice): unknown {
    const ended = this.#done || (rest["finish_reason"] ?? null) !== null;
    return { message, ...rest, ...(!ended && { error: "the stream ended before the reply did" }) };
  }

  #dispatch(): void {
    const [data, event] = [this.#data.join("\n").trim(), this.#event];
    this.#data = [];
    this.#event = "";
    if (data === "") return;
    if (data === "[DONE]") {
      this.#done = true;
      return;
    }
    const parsed = parseReply(data);
    const chunk: unknown = Array.isArray(parsed) && parsed.length === 1 ? parsed[0] : parsed;
    const error = isRecord(chunk) ? (chunk["error"] ?? null) : chunk;
    if (errorWords(error) !== null) this.#error ??= error;
    else if (event === "error") this.#error ??= chunk;
    else if (isRecord(chunk)) this.#takeChunk(chunk);
  }

  #takeChunk({ choices, usage, x_groq: groq, ...chunk }: Members): void {
    for (const [name, value] of Object.entries(chunk)) {
      if (value !== null && name !== "__proto__") this.#reply[name] ??= value;
    }
    // Groq says in a member of its own what a call took, Moonshot in the choice.
    const counted = usage ?? (isRecord(groq) ? groq["usage"] : null);
    if (counted != null) this.#reply["usage"] = counted;
    // The first weights are those of the first chunk, and the last are what counts.
    if (chunk["weight_version"] != null) this.#reply["weight_version"] = chunk["weight_version"];
    if (!Array.isArray(choices)) return;
    for (const choice of choices.slice(0, LIMITS.choicesPerReply)) if (isRecord(choice)) this.#takeChoice(choice);
  }

  #takeChoice({ index, delta, message, usage, logprobs, ...chunk }: Members): void {
    const at = typeof index === "number" ? index : 0;
    if (this.#choices.size > LIMITS.choicesPerReply) return;
    const choice = this.#choices.get(at) ?? { message: {}, rest: {} };
    this.#choices.set(at, choice);
    if (usage != null) this.#reply["usage"] ??= usage;
    // Some servers end with the whole message, behind its pieces or in their place.
    if (isRecord(delta)) mergeDelta(choice.message, delta);
    else if (isRecord(message) && Object.keys(choice.message).length === 0) mergeDelta(choice.message, message);
    if (isRecord(logprobs) && Array.isArray(logprobs["content"])) {
      choice.rest["logprobs"] = joinedLogprobs(choice.rest["logprobs"], logprobs["content"]);
    }
    for (const [name, value] of Object.entries(chunk)) {
      if (value === null || name === "__proto__") continue;
      const before = choice.rest[name];
      choice.rest[name] = ID_LISTS.has(name) ? joinedList(before, value) : value;
    }
  }
}

function joinedLogprobs(before: unknown, entries: readonly unknown[]): unknown {
  return { content: joinedList(isRecord(before) ? before["content"] : null, entries) };
}

function joinedList(before: unknown, items: unknown): unknown[] {
  const all: unknown[] = Array.isArray(before) ? before : [];
  if (Array.isArray(items)) for (const item of items) all.push(item);
  return all;
}
