/** The model of the smoke run: a stream with one constant answer. */
import { SMOKE_ANSWER } from "./wire.ts";

const BASE = { id: "smoke", object: "chat.completion.chunk", created: 0, model: "smoke" };
const CHUNKS = [
  { ...BASE, choices: [{ index: 0, delta: { role: "assistant", content: SMOKE_ANSWER }, finish_reason: null }] },
  { ...BASE, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { ...BASE, choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
];
const STREAM = [...CHUNKS.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");

/** More than any request of the smoke run. */
const MOST_BYTES = 256 * 1024;

/** The request is read to its end first: a server that answers earlier may close the connection before the reply is sent. */
export async function answerSmoke({ body }: Request): Promise<Response> {
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.byteLength;
    if (bytes > MOST_BYTES) break;
  }
  return new Response(STREAM, { headers: { "content-type": "text/event-stream" } });
}
