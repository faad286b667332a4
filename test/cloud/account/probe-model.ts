/** A model that calls the first tool three times and then answers, as a stream. */
import * as z from "zod";

const Tool = z.object({ function: z.object({ name: z.string() }) });
const Asked = z.object({
  model: z.string(),
  messages: z.array(z.object({ role: z.string() })),
  tools: z.array(Tool).default([]),
});

/** What is sent for a tool of an environment that comes with Rollcall. */
const ARGUMENTS: Readonly<Record<string, object>> = { add: { a: 1, b: 2 }, query: { sql: "SELECT 1 AS one" } };
const CALLS = 3;

/** Seconds of a turn, told by the name of the model: "probe-3" answers 3 s after the headers. */
const SECONDS = /^probe-(\d+(?:\.\d+)?)$/;

export function modelReply(body: unknown): Response {
  const { model, messages, tools } = Asked.parse(body);
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const name = turn < CALLS ? tools[0]?.function.name : undefined;
  const call = { index: 0, id: `call_${turn}`, type: "function" };
  const delta =
    name === undefined
      ? { content: "42" }
      : { tool_calls: [{ ...call, function: { name, arguments: JSON.stringify(ARGUMENTS[name] ?? {}) } }] };
  const base = { id: `c${turn}`, object: "chat.completion.chunk", created: 0, model };
  const choice = (delta: object, finish_reason: string | null) => ({ index: 0, delta, finish_reason });
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const chunks = [
    { ...base, choices: [choice({ role: "assistant", content: null }, null)] },
    { ...base, choices: [choice(delta, null)] },
    { ...base, choices: [choice({}, name === undefined ? "stop" : "tool_calls")] },
    { ...base, choices: [], usage },
  ];
  const [, seconds = "0"] = SECONDS.exec(model) ?? [];
  return new Response(eventStream(chunks, Number(seconds) * 1000), {
    headers: { "content-type": "text/event-stream" },
  });
}

/** The pause is after the first chunk. */
function eventStream(chunks: readonly object[], pauseMs: number): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const events = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"];
  return new ReadableStream({
    async start(controller) {
      for (const [at, event] of events.entries()) {
        if (at === 1) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        controller.enqueue(encoder.encode(`data: ${event}\n\n`));
      }
      controller.close();
    },
  });
}
