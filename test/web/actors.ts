/**
 * The model servers of the suite: a policy and a judge, selected by model name; and one whose every text is an attack.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { textOf } from "../../src/contract/messages.ts";

import { type Answer, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";

/** Tasks for which one model has the answer and the other does not. */
export const TASKS = Array.from({ length: 24 }, (_, at) => ({
  question: `What is item ${at}?`,
  answer: `answer ${at}`,
}));

/** `old` has the answers of the even items, `new` of those divisible by three; item 23 is refused for both. */
function replyOf({ model, messages }: ModelRequest): Answer {
  const asked = textOf(messages.findLast(({ role }) => role === "user"));
  if (model === "judge") return verdictOn(asked);
  const item = Number(/item (\d+)/.exec(asked)?.[1]);
  if (item === 23) return { fault: { kind: "status", status: 400 } };
  const knows = item % (model === "old" ? 2 : 3) === 0;
  return knows ? `It is answer ${item}.` : "I do not know.";
}

function verdictOn(asked: string): string {
  const right = asked.includes("It is answer");
  const reason = right ? "the reply names the reference answer" : "the reply names nothing";
  return JSON.stringify({ reason, verdict: right ? "right" : "wrong" });
}

export const startActors = () => startScriptedModel({ reply: replyOf });

export const ATTACK = [
  "<script>alert('script')</script><img src=x onerror=alert('image')><iframe src=javascript:alert(1)></iframe>",
  "[a link](javascript:alert('link')) ![a picture](https://attack.test/pixel.png) https://attack.test/bare",
  "\u001b[31mred\u001b[0m \u202egnp.exe\u202c \u2066isolated\u2069 \u0000 \u200bzero \ud800 lone",
];
export const MEGABYTE = 1_000_000;

/** Answers with the attack, a line of a megabyte, and bytes that are not UTF-8. */
export async function startAttacker(): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      const content = `${ATTACK.join("\n")}\n${"x".repeat(MEGABYTE)}\nENDS`;
      const message = { role: "assistant", content, reasoning_content: ATTACK.join("\n") };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message, finish_reason: "stop", logprobs: null }];
      const text = JSON.stringify({ id: "c", object: "chat.completion", created: 0, model: "m", choices, usage });
      const [before = "", after = ""] = text.split("ENDS");
      const bytes = Buffer.concat([Buffer.from(before), Buffer.from([0xc3, 0x28, 0xff, 0xfe]), Buffer.from(after)]);
      response.writeHead(200, { "content-type": "application/json" }).end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, stop: () => server.close() };
}
