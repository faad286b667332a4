/**
 * The most tokens that a call can use: the amount that a run with a cap reserves before the call is sent. Pure.
 *
 * A tokenizer that works on bytes never makes more tokens than there are bytes, so text counts as its bytes in UTF-8.
 * Pictures and sounds are not read as text: they count as what providers document. What a chat template adds to a
 * message (a role, a separator) is less than the JSON keys around it, which are counted. What is added once to each
 * call is bounded by `TEMPLATE_TOKENS`. docs/billing.md names the source of each number.
 */
import { isRecord } from "../../contract/json.ts";
import type { ContentPart, Message } from "../../contract/messages.ts";
import type { CallSize } from "../../core/costs/call-budget.ts";
import { type AskedOfModel, requestBody } from "./inference.ts";
import { REPLY_COUNTS, TOKEN_LIMITS, unboundedField } from "./unbounded-field.ts";

/** Added once to a call: a header with the date and the model's name, and the tokens that begin the reply. */
const TEMPLATE_TOKENS = 256;
/**
 * The same if a provider adds instructions for tools, or a template adds its own text because there is no system
 * message.
 */
const TEMPLATE_TOKENS_WITH_TEXT = 1024;

/** GPT-4o mini uses the most of all documented models: 2,833 and 8 tiles of 5,667. */
const TOKENS_PER_PICTURE = 49_152;
/** The most of these model families is Qwen's: it scales a picture down to 16,384 patches. */
const TOKENS_PER_SMALL_PICTURE = 16_384;
const SMALL_PICTURES = /claude|gemini|gemma|llama|mistral|pixtral|qwen/i;

/** A sound is padded to at least this size. */
const TOKENS_PER_SOUND = 2048;
/**
 * Providers count up to 32 tokens a second. One second of MP3 at its lowest rate, 8 kbit/s, is 1,333 base64 characters.
 */
const CHARACTERS_PER_SOUND_TOKEN = 16;
const RATED_SOUNDS = ["mp3", "wav"];

export function sizeOfCall(call: AskedOfModel): CallSize {
  const parts = call.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const media = parts.filter(({ type }) => type !== "text").map((part) => mediaTokens(part, call.model));
  const body = requestBody({ ...call, messages: call.messages.map(withoutData) });
  const bounded = media.filter((tokens) => tokens !== null);
  const prompt_tokens = bounded.reduce((sum, tokens) => sum + tokens, bytesOf(body) + templateTokens(call));
  const isBounded = bounded.length === media.length && unboundedField(call.sampling.extra_body ?? {}) === null;
  return { prompt_tokens, most_tokens: isBounded ? mostTokens(body) : null };
}

/** The same for a call of an embedding model, which answers without tokens. Each text gets a mark at either end. */
export function sizeOfEmbeddings({ texts }: { readonly texts: readonly string[] }): CallSize {
  return { prompt_tokens: bytesOf(texts) + TEMPLATE_TOKENS + 2 * texts.length, most_tokens: 0 };
}

/** A call with token ids, which samples one token; the engine may add a mark at their beginning. */
export function sizeOfTokens(tokens: number): CallSize {
  return { prompt_tokens: tokens + 1, most_tokens: 1 };
}

function templateTokens({ messages, tools }: AskedOfModel): number {
  const instructed = messages.some(({ role }) => role === "system");
  return instructed && tools.length === 0 ? TEMPLATE_TOKENS : TEMPLATE_TOKENS_WITH_TEXT;
}

/** Null if it has no bound: a file, or a part that only the endpoint understands, may become any number of tokens. */
function mediaTokens(part: ContentPart, model: string): number | null {
  if (part.type === "image_url") return SMALL_PICTURES.test(model) ? TOKENS_PER_SMALL_PICTURE : TOKENS_PER_PICTURE;
  return part.type === "input_audio" ? TOKENS_PER_SOUND + soundTokens(fieldsOf(part, "input_audio")) : null;
}

function soundTokens({ data, format }: Readonly<Record<string, unknown>>): number {
  const { length } = String(data ?? "");
  return RATED_SOUNDS.includes(String(format)) ? Math.ceil(length / CHARACTERS_PER_SOUND_TOKEN) : length;
}

/** The message without the data of pictures and sounds, which are not read as text. */
function withoutData(message: Message): Message {
  const { content } = message;
  return Array.isArray(content) ? { ...message, content: content.map(partWithoutData) } : message;
}

function partWithoutData(part: ContentPart): ContentPart {
  if (part.type === "input_audio") return { ...part, input_audio: { ...fieldsOf(part, "input_audio"), data: "" } };
  const { url, ...image } = fieldsOf(part, "image_url");
  const inline = part.type === "image_url" && /^data:/i.test(String(url));
  return inline ? { ...part, image_url: { ...image, url: "" } } : part;
}

function fieldsOf(part: ContentPart, name: string): Readonly<Record<string, unknown>> {
  const fields: unknown = Reflect.get(part, name);
  return isRecord(fields) ? fields : {};
}

function bytesOf(body: unknown): number {
  return new TextEncoder().encode(JSON.stringify(body)).length;
}

/**
 * The most tokens of the reply. Engines differ in which of the limits they use, and they sample as many replies as
 * requested. Null without a limit, or with a value that engines may read differently, such as -1 or a text.
 */
function mostTokens(body: Readonly<Record<string, unknown>>): number | null {
  const given = (fields: readonly string[]) =>
    fields.map((field) => body[field] ?? null).filter((value) => value !== null);
  const limits = given(TOKEN_LIMITS);
  const replies = given(REPLY_COUNTS);
  if (limits.length === 0 || ![...limits, ...replies].every(isPositive)) return null;
  const most = Math.max(...limits.map(Number)) * Math.max(1, ...replies.map(Number));
  return isPositive(most) ? most : null;
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}
