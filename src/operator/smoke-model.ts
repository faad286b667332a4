/** The model of the smoke run: a stream with one constant answer. The request's body is not read. */
import { SMOKE_ANSWER } from "./wire.ts";

const BASE = { id: "smoke", object: "chat.completion.chunk", created: 0, model: "smoke" };
const CHUNKS = [
  { ...BASE, choices: [{ index: 0, delta: { role: "assistant", content: SMOKE_ANSWER }, finish_reason: null }] },
  { ...BASE, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { ...BASE, choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
];
const STREAM = [...CHUNKS.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");

export function answerSmoke(): Response {
  return new Response(STREAM, { headers: { "content-type": "text/event-stream" } });
}
