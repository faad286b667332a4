/**
 * Finds out what an endpoint refuses in a request, and makes the request without it. Servers differ in the members of
 * OpenAI's API that they accept: some refuse `strict` in a tool, some only reply whole, some refuse a member of a message
 * that they sent themselves. What was refused is remembered as a name (`Refused`), and later calls leave it
 * out.
 *
 * Sources of the error texts: the documentation and the issue trackers that docs/endpoints.md lists.
 */
import { isRecord } from "../../contract/json.ts";
import type { ErrorWords } from "./error-words.ts";

type Body = Readonly<Record<string, unknown>>;

/** Members of a message that every server accepts. */
const STANDARD: ReadonlySet<string> = new Set(["role", "content", "name", "tool_calls", "tool_call_id"]);
const STANDARD_OF_CALL: ReadonlySet<string> = new Set(["id", "type", "function"]);
const STANDARD_OF_FUNCTION: ReadonlySet<string> = new Set(["name", "arguments"]);

/** The endpoint only replies whole. */
export const STREAMS = "streams";
const NOT_BESIDES: ReadonlySet<string> = new Set(["model", "messages", "stream", "stream_options"]);
/**
 * Statuses of a refusal of something in the request: OpenAI and most servers, Cohere and FastAPI (422), servers without
 * streams (405, 406, 415, 501).
 */
const REFUSING: ReadonlySet<number> = new Set([400, 405, 406, 415, 422, 501]);
/**
 * One sentence names streams and says that there are none, for this model or this account. If this is wrong, the
 * repeated call fails and does no harm.
 */
const A_STREAM = /(?<![a-z])stream(?:ing|ed|s)?(?![a-z])(?!_options)|流式/;
const UNAVAILABLE =
  /unsupported|n[o']t (?:yet )?(?:support|available|allowed|possible|enabled|implemented|permitted)|does ?n[o']t support|(?<![a-z])(?:only|must|cannot|can't|disabled?|verified to|without|no|non|false|unable)(?![a-z])|[不非]/;
/** A stream that failed, which is a different error. */
const FAILED = /upstream|reset|closed|broke|interrupt|disconnect|timed? ?out|try again|retry/;
/** `strict` as a name, or about tools; other things can be strict too. */
const STRICT =
  /["'`.]strict\b|\bstrict["'`:=]|\b(?:field|parameter|property|key|argument|member|be|all|non)[ -]strict\b|\bstrict (?:mode|tools?|tool|functions?|schemas?|json)\b/;
/** A strict tool needs a closed schema (OpenAI, Azure, Fireworks). Without `strict` the same schema may be accepted. */
const NEEDS_CLOSED_SCHEMA =
  /invalid schema for function[^;]*(?:additionalproperties|required|not permitted|in context)/;
const CLOSED_SCHEMA_CODES: ReadonlySet<string> = new Set(["invalid_function_parameters", "invalid_tool_schema"]);
const UNKNOWN =
  "unsupported|n[o']t supported|does ?n[o']t support|un(?:known|recogni[sz]ed|expected)|not (?:permitted|allowed|" +
  String.raw`recogni[sz]ed|accepted|defined|a valid field)|extra inputs?|additional propert\w+|cannot find field|no such field|remove`;
/** A server that requires the member names it in its error too. */
const WANTS = /missing|must be (passed|returned|provided|included|sent)|\brequired\b/;
/** A server adds only a few members; each is searched for in its refusals. */
const MOST_MEMBERS = 100;
const MEMBER = /^[a-z][a-z0-9_.-]{0,63}$/i;

/**
 * What the server seems to refuse in this request, by the text of its error; null if the error means something else.
 * The caller remembers it only if a call without it was answered.
 */
export function refusedIn(
  body: Body,
  status: number,
  { words, fields, codes }: Pick<ErrorWords, "words" | "fields" | "codes">,
): string | null {
  if (!REFUSING.has(status)) return null;
  const isRefused = (name: string) => words.some((said) => isUnknown(said, name, fields));
  if (body["stream_options"] !== undefined && isRefused("stream_options")) return "stream_options";
  if (body["stream"] === true && isStreamRefused({ words, fields, codes })) return STREAMS;
  if (sendsStrict(body) && isStrictRefused({ words, fields, codes })) return "tools.strict";
  // A setting of the run with the same name belongs to the run.
  const isOwn = (name: string) => name in body && !words.concat(fields).some((said) => said.includes("messages"));
  const refused = membersOf(body).filter((name) => !isOwn(name) && isRefused(name));
  // `reasoning_content` contains `reasoning` too, so the longest name is meant.
  const [longest] = refused.toSorted((one, other) => other.length - one.length);
  return longest === undefined ? null : `messages.${longest}`;
}

function isStreamRefused({ words, fields, codes }: Pick<ErrorWords, "words" | "fields" | "codes">): boolean {
  if (words.some((said) => FAILED.test(said))) return false;
  if (fields.some((field) => field.split(".").at(-1) === "stream")) return true;
  return [...words, ...codes].some((said) => refusingStreams(said).length > 0);
}

/** The sentences that say that there are no streams. */
function refusingStreams(said: string): string[] {
  return said.split(/[.;!。]/).filter((sentence) => A_STREAM.test(sentence) && UNAVAILABLE.test(sentence));
}

/**
 * Whether streams are refused only beside another part of this request, which the refusal names (vLLM's
 * `prompt_logprobs`). Then other requests may stream, so this must not be remembered.
 */
export function isRefusedBesides(body: Body, name: string, { words }: Pick<ErrorWords, "words">): boolean {
  if (name !== STREAMS) return false;
  const others = Object.keys(body).filter((other) => !NOT_BESIDES.has(other) && MEMBER.test(other));
  const sentences = words.flatMap(refusingStreams);
  return others.slice(0, MOST_MEMBERS).some((other) => {
    const named = new RegExp(patternOf(other));
    return sentences.some((sentence) => named.test(sentence));
  });
}

function isStrictRefused({ words, fields, codes }: Pick<ErrorWords, "words" | "fields" | "codes">): boolean {
  if (words.some((said) => STRICT.test(said) || NEEDS_CLOSED_SCHEMA.test(said))) return true;
  return codes.some((code) => CLOSED_SCHEMA_CODES.has(code)) || fields.some((field) => /\bstrict\b/i.test(field));
}

/**
 * Whether the text says that a member with this name is unknown: close to the name, or about a field with that name.
 */
function isUnknown(said: string, name: string, fields: readonly string[]): boolean {
  if (WANTS.test(said)) return false;
  const named = patternOf(name);
  const near = new RegExp(`(?:${UNKNOWN})[^;]{0,80}?${named}|${named}[^;]{0,80}?(?:${UNKNOWN})`);
  const isField = fields.some((field) => field.split(".").includes(name.toLowerCase()));
  return near.test(said) || (isField && new RegExp(UNKNOWN).test(said));
}

/** A name of one word also occurs in ordinary sentences. As a name it is in quotes, or at the end of a path. */
function patternOf(name: string): string {
  const literal = name.toLowerCase().replaceAll(/\W/g, "\\$&");
  const marked = "(?<=[\"'`.\\]]|(?:field|parameter|property|key|argument|member):? )";
  return `${name.includes("_") ? "(?<![a-z0-9_])" : marked}${literal}(?![a-z0-9_])`;
}

function sendsStrict({ tools }: Body): boolean {
  return Array.isArray(tools) && tools.some((tool) => isRecord(tool) && withinFunction(tool, "strict"));
}

function withinFunction({ function: called }: Body, name: string): boolean {
  return isRecord(called) && name in called;
}

/** The members of its messages and tool calls that a server may not accept. */
function membersOf({ messages }: Body): readonly string[] {
  const all = Array.isArray(messages) ? messages.filter(isRecord) : [];
  const calls = all.flatMap(callsOf);
  const found = [
    ...all.flatMap((message) => beyond(STANDARD, message)),
    ...calls.flatMap((call) => beyond(STANDARD_OF_CALL, call)),
    ...calls.flatMap(({ function: called }) => (isRecord(called) ? beyond(STANDARD_OF_FUNCTION, called) : [])),
  ];
  return [...new Set(found)].filter((name) => MEMBER.test(name)).slice(0, MOST_MEMBERS);
}

function beyond(standard: ReadonlySet<string>, object: Body): string[] {
  return Object.keys(object).filter((name) => !standard.has(name));
}

function callsOf({ tool_calls: calls }: Body): readonly Body[] {
  return Array.isArray(calls) ? calls.filter(isRecord) : [];
}

/** The request without what is refused, and the names of the changes. */
export function withoutRefused(
  body: Body,
  refused: readonly string[],
): { readonly body: Body; readonly changes: readonly string[] } {
  let adapted = body;
  const changes: string[] = [];
  for (const name of refused) {
    const next = without(adapted, name);
    if (next !== adapted) changes.push(name);
    adapted = next;
  }
  return { body: adapted, changes };
}

function without(body: Body, name: string): Body {
  switch (name) {
    case STREAMS:
      return "stream" in body ? withoutMember(withoutMember(body, "stream"), "stream_options") : body;
    // What endpoints that only stream refused before 0.3: every call is a stream now.
    case "whole_replies":
      return body;
    case "stream_options":
      return "stream_options" in body ? withoutMember(body, name) : body;
    case "tools.strict":
      return sendsStrict(body) ? { ...body, tools: withoutStrict(body["tools"]) } : body;
    default: {
      const member = name.slice("messages.".length);
      return membersOf(body).includes(member) ? { ...body, messages: withoutMembers(body["messages"], member) } : body;
    }
  }
}

function withoutStrict(tools: unknown): unknown {
  return Array.isArray(tools) ? tools.map((tool) => withinTool(tool, "strict")) : tools;
}

function withoutMembers(messages: unknown, member: string): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message) => {
    if (!isRecord(message)) return message;
    const { tool_calls: calls, ...rest } = message;
    const sent = withoutMember(rest, member);
    return Array.isArray(calls) ? { ...sent, tool_calls: calls.map((call) => withinTool(call, member)) } : sent;
  });
}

/** A tool or a tool call without this member, in itself and in its function. */
function withinTool(tool: unknown, member: string): unknown {
  if (!isRecord(tool)) return tool;
  const { function: called, ...rest } = tool;
  const sent = withoutMember(rest, member);
  return isRecord(called) ? { ...sent, function: withoutMember(called, member) } : sent;
}

function withoutMember({ ...rest }: Body, member: string): Body {
  const { [member]: _, ...others } = rest;
  return others;
}
