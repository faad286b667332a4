/** An agent with Anthropic's client, which prints its answer. */
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic();
const content = process.env["ROLLCALL_PROMPT"] ?? "";
const messages = [{ role: "user" as const, content }];
const reply = await client.messages.create({ model: "any", max_tokens: 64, messages });
const [part] = reply.content;
process.stdout.write(`${part?.type === "text" ? part.text : ""}\n`);
