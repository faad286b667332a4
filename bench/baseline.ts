/**
 * The baseline for the platform: the same conversations in a bare loop around the `openai` SDK. It stores nothing,
 * scores nothing and does not survive a kill. It runs as its own process:
 *   fork("bench/baseline.ts", [model url, rollouts, turns])
 * It sends {} when it has loaded, starts at the first message, and sends {seconds, prompt_tokens} at the end.
 */
import OpenAI from "openai";
import { IN_FLIGHT, MODEL, workload } from "./workload.ts";

type Messages = OpenAI.ChatCompletionMessageParam[];

const [baseURL = "", rolloutsText, turnsText] = process.argv.slice(2);
const rollouts = Number(rolloutsText);
const turns = Number(turnsText);
const { question, tools, result } = workload(turns);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const definitions = [...tools];
let promptTokens = 0;
let next = 0;

async function playAll(): Promise<void> {
  while (next < rollouts) {
    next += 1;
    await play();
  }
}

async function play(): Promise<void> {
  const messages: Messages = [{ role: "user", content: question }];
  for (let turn = 1; ; turn += 1) {
    const reply = await client.chat.completions.create({
      model: MODEL,
      messages,
      tools: definitions,
    });
    promptTokens += reply.usage?.prompt_tokens ?? 0;
    const message = reply.choices[0]?.message;
    const calls = message?.tool_calls ?? [];
    if (message === undefined || (calls.length === 0) !== (turn === turns)) {
      throw new Error(`turn ${turn} of ${turns} is not what the model should say`);
    }
    if (calls.length === 0) return;
    messages.push(message);
    for (const call of calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: result });
    }
  }
}

process.once("disconnect", () => process.exit(0));
process.once("message", async () => {
  const started = performance.now();
  await Promise.all(Array.from({ length: IN_FLIGHT }, playAll));
  const seconds = (performance.now() - started) / 1000;
  process.send?.({ seconds, prompt_tokens: promptTokens });
});
process.send?.({});
