/** A reply as a message of Anthropic, whole and as events. */
import type { JsonObject } from "../../contract/json.ts";
import type { Usage } from "../../contract/messages.ts";
import { carriedText, type ShownMessage, shownMessage } from "./carried.ts";
import { piecesOf, typedEvent } from "./event-text.ts";
import type { FormReply } from "./form.ts";
import { argumentsOf, inputOf } from "./tool-input.ts";

export function messageReply(reply: FormReply): JsonObject {
  const content = blocksOf(reply).map(({ whole }) => whole);
  return { ...envelope(reply), content, stop_reason: stopReason(reply), usage: usageOf(reply.usage) };
}

export function* messageEvents(reply: FormReply): Iterable<string> {
  const { output_tokens, ...usage } = usageOf(reply.usage);
  const message = { ...envelope(reply), content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } };
  yield typedEvent({ type: "message_start", message });
  for (const [index, { begun, deltas }] of blocksOf(reply).entries()) {
    yield typedEvent({ type: "content_block_start", index, content_block: begun });
    for (const delta of deltas()) yield typedEvent({ type: "content_block_delta", index, delta });
    yield typedEvent({ type: "content_block_stop", index });
  }
  const delta = { stop_reason: stopReason(reply), stop_sequence: null, stop_details: null, container: null };
  yield typedEvent({ type: "message_delta", delta, usage: { ...usage, output_tokens } });
  yield typedEvent({ type: "message_stop" });
}

function envelope({ id, model }: FormReply): JsonObject {
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    container: null,
    diagnostics: null,
    stop_details: null,
    stop_sequence: null,
  };
}

interface Block {
  readonly whole: JsonObject;
  /** The block as its first event has it. */
  readonly begun: JsonObject;
  readonly deltas: () => Iterable<JsonObject>;
}

/** The blocks of a reply: its reasoning, its text, its calls. */
function blocksOf({ message }: FormReply): readonly Block[] {
  const shown = shownMessage(message);
  const calls = shown.calls.map((call) => ({ ...call, arguments: argumentsOf(inputOf(call.arguments)) }));
  const carried = carriedText(message, { ...shown, calls });
  const blocks = [
    ...(shown.reasoning === "" ? [] : [thinkingBlock(shown.reasoning, carried ?? "")]),
    ...(shown.text === "" ? [] : [textBlock(shown.text)]),
    ...shown.calls.map(callBlock),
  ];
  if (carried === null || shown.reasoning !== "") return blocks;
  const [first = textBlock(""), ...others] = blocks;
  return [{ ...first, whole: { ...first.whole, carried }, begun: { ...first.begun, carried } }, ...others];
}

function thinkingBlock(thinking: string, signature: string): Block {
  return {
    whole: { type: "thinking", thinking, signature },
    begun: { type: "thinking", thinking: "", signature: "" },
    *deltas() {
      for (const piece of piecesOf(thinking)) yield { type: "thinking_delta", thinking: piece };
      yield { type: "signature_delta", signature };
    },
  };
}

function textBlock(text: string): Block {
  return {
    whole: { type: "text", text, citations: null },
    begun: { type: "text", text: "", citations: null },
    *deltas() {
      for (const piece of piecesOf(text)) yield { type: "text_delta", text: piece };
    },
  };
}

function callBlock({ id, name, arguments: text }: ShownMessage["calls"][number]): Block {
  const input = inputOf(text);
  const block = { type: "tool_use", id, name, caller: { type: "direct" } };
  return {
    whole: { ...block, input },
    begun: { ...block, input: {} },
    *deltas() {
      for (const partial_json of piecesOf(JSON.stringify(input))) yield { type: "input_json_delta", partial_json };
    },
  };
}

function stopReason({ finish_reason, message }: FormReply): string {
  if (finish_reason === "length") return "max_tokens";
  return message.tool_calls === undefined ? "end_turn" : "tool_use";
}

/** Anthropic counts tokens that were read from the cache apart. Unknown counts are 0. */
function usageOf(usage: Usage | null) {
  const { prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0 } = usage ?? {};
  return {
    cache_creation: null,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached_tokens,
    inference_geo: null,
    input_tokens: prompt_tokens - cached_tokens,
    output_tokens: completion_tokens,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: null,
    speed: null,
  };
}
