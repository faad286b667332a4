/** An agent of two turns with `fetch`. Between them it waits until the file exists that its argument names. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [file = ""] = process.argv.slice(2);
const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key } = process.env;

async function say(content: string): Promise<string> {
  const reply = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "any", messages: [{ role: "user", content }] }),
  });
  if (!reply.ok) throw new Error(await reply.text());
  const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content ?? "";
}

const first = await say("one");
process.stderr.write("after turn 1\n");
while (!existsSync(file)) await sleep(20);
process.stdout.write(`${first} ${await say("two")}\n`);
