/** An agent with OpenAI's client: a chat completion, then a streamed one that continues it. */
import { writeFileSync } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI();
const model = process.env["OPENAI_MODEL"] ?? "";
const question = { role: "user" as const, content: process.env["ROLLCALL_PROMPT"] ?? "" };
const first = await client.chat.completions.create({ model, messages: [question] });
const said = first.choices[0]?.message.content ?? "";
const again = [question, { role: "assistant" as const, content: said }, { role: "user" as const, content: "Sure?" }];
const stream = await client.chat.completions.create({ model, messages: again, stream: true });
let text = "";
for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
const result = { answer: text, rewards: { solved: text === "yes" ? 1 : 0 }, metrics: { steps: 2 } };
writeFileSync(process.env["ROLLCALL_RESULT_FILE"] ?? "", JSON.stringify(result));
