/** A reply as a response of OpenAI's Responses, whole and as events. */
import type { Json, JsonObject } from "../../contract/json.ts";
import type { Usage } from "../../contract/messages.ts";
import { carriedText, type ShownMessage, shownMessage } from "./carried.ts";
import { piecesOf, typedEvent } from "./event-text.ts";
import type { FormReply } from "./form.ts";

/** `text`: what of the item is streamed, its text or its arguments. */
interface Item {
  readonly kind: "reasoning" | "message" | "function_call";
  readonly item: JsonObject & { readonly id: string };
  readonly text: string;
  readonly status: "completed" | "incomplete";
}

export function responseReply(reply: FormReply, echo: JsonObject): JsonObject {
  const output = outputOf(reply).map(wholeItem);
  const isCut = reply.finish_reason === "length";
  return {
    ...envelope(reply, echo),
    status: isCut ? "incomplete" : "completed",
    completed_at: isCut ? null : reply.created,
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output,
    output_text: shownMessage(reply.message).text,
    usage: reply.usage === null ? null : usageOf(reply.usage),
  };
}

export function* responseEvents(reply: FormReply, echo: JsonObject): Iterable<string> {
  let sequence_number = 0;
  const event = (type: string, members: JsonObject) => {
    const text = typedEvent({ type, ...members, sequence_number });
    sequence_number += 1;
    return text;
  };
  const begun = { ...envelope(reply, echo), status: "in_progress", output: [], output_text: "", usage: null };
  yield event("response.created", { response: begun });
  yield event("response.in_progress", { response: begun });
  for (const [output_index, item] of outputOf(reply).entries()) {
    const of = (type: string, members: JsonObject) => event(type, { output_index, ...members });
    yield of("response.output_item.added", { item: begunItem(item) });
    yield* item.kind === "function_call" ? argumentEvents(item, of) : textEvents(item, of);
    yield of("response.output_item.done", { item: wholeItem(item) });
  }
  const response = responseReply(reply, echo);
  yield event(`response.${String(response["status"])}`, { response });
}

type MakeEvent = (type: string, members: JsonObject) => string;

function* argumentEvents({ item, text }: Item, event: MakeEvent): Iterable<string> {
  const place = { item_id: item.id };
  for (const delta of piecesOf(text)) yield event("response.function_call_arguments.delta", { ...place, delta });
  yield event("response.function_call_arguments.done", { ...place, name: item["name"] ?? null, arguments: text });
}

function* textEvents(item: Item, event: MakeEvent): Iterable<string> {
  const place = { item_id: item.item.id, content_index: 0 };
  const isMessage = item.kind === "message";
  const name = isMessage ? "response.output_text" : "response.reasoning_text";
  const beside = isMessage ? { logprobs: [] } : {};
  yield event("response.content_part.added", { ...place, part: partOf(item, "") });
  for (const delta of piecesOf(item.text)) yield event(`${name}.delta`, { ...place, delta, ...beside });
  yield event(`${name}.done`, { ...place, text: item.text, ...beside });
  yield event("response.content_part.done", { ...place, part: partOf(item, item.text) });
}

/** The items of a reply: its reasoning, its text, its calls. The last item of a reply that was cut is incomplete. */
function outputOf(reply: FormReply): readonly Item[] {
  const shown = shownMessage(reply.message);
  const carried = carriedText(reply.message, shown);
  const items = shownItems(reply.id, shown);
  return items.map((item, at): Item => {
    const hidden = at === 0 && carried !== null;
    const member = item.kind === "reasoning" ? "encrypted_content" : "carried";
    const isCut = at === items.length - 1 && reply.finish_reason === "length";
    return {
      ...item,
      item: { ...item.item, ...(hidden && { [member]: carried }) },
      status: isCut ? "incomplete" : "completed",
    };
  });
}

/** A reply with nothing has an empty text. */
function shownItems(id: string, { reasoning, text, calls }: ShownMessage): readonly Omit<Item, "status">[] {
  const isEmpty = reasoning === "" && text === "" && calls.length === 0;
  const thoughts = { id: `rs_${id}`, type: "reasoning", summary: [] };
  const said = { id: `msg_${id}`, type: "message", role: "assistant" };
  return [
    ...(reasoning === "" ? [] : [{ kind: "reasoning" as const, text: reasoning, item: thoughts }]),
    ...(text === "" && !isEmpty ? [] : [{ kind: "message" as const, text, item: said }]),
    ...calls.map((call, at) => {
      const item = { id: `fc_${id}_${at}`, type: "function_call", call_id: call.id, name: call.name };
      return { kind: "function_call" as const, text: call.arguments, item };
    }),
  ];
}

function wholeItem(item: Item): JsonObject {
  const { kind, text, status } = item;
  if (kind === "function_call") return { ...item.item, arguments: text, status };
  return { ...item.item, content: [partOf(item, text)], status };
}

/** The item without its text, which comes in events of its own. */
function begunItem({ item, kind }: Item): JsonObject {
  return { ...item, ...(kind === "function_call" ? { arguments: "" } : { content: [] }), status: "in_progress" };
}

function partOf({ kind }: Item, text: string): JsonObject {
  if (kind === "reasoning") return { type: "reasoning_text", text };
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

const DEFAULTS: JsonObject = {
  background: false,
  error: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: false,
  temperature: null,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: "disabled",
};

function envelope({ id, created, model }: FormReply, echo: JsonObject): { readonly [name: string]: Json } {
  const begun = { status: "in_progress", completed_at: null, incomplete_details: null };
  return { id: `resp_${id}`, object: "response", created_at: created, model, ...begun, ...DEFAULTS, ...echo };
}

function usageOf({ prompt_tokens, completion_tokens, total_tokens, cached_tokens = 0 }: Usage): JsonObject {
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens: 0 },
    output_tokens: completion_tokens,
    // The model's server does not count them apart.
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
}
