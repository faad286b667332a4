/** Chat completions whose prompt is token ids, and the renderings from which such prompts are made. */
import { expect, test } from "vitest";
import { renderChat } from "../chat-template.ts";
import { END, encodeText } from "../tokenizer.ts";
import { MODEL, serveReply } from "./served-policy.ts";

const HELLO = [{ role: "user" as const, content: "Reverse: abc" }];
const prompt = renderChat(HELLO, { addGenerationPrompt: true });
const CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>';
const tools = [{ type: "function", function: { name: "f", parameters: {} } }];

test("the ids in tokens are the prompt, whatever the messages are, and tool calls are parsed", async () => {
  const { post } = await serveReply(HELLO, CALL);
  const asked = { model: MODEL, messages: [{ role: "user", content: "other" }], tools, return_token_ids: true };
  const response = await post("/v1/chat/completions/tokens", { ...asked, tokens: prompt });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    prompt_token_ids: prompt,
    choices: [
      {
        message: { tool_calls: [{ function: { name: "f", arguments: "{}" } }] },
        token_ids: [...encodeText(CALL), END],
        finish_reason: "tool_calls",
      },
    ],
  });
});

test.for([
  [{}, "tokens"],
  [{ tokens: [] }, "tokens"],
  [{ tokens: [1_000_000] }, "tokens: id 1000000 is out of the vocabulary"],
] as const)("ids that are no prompt are refused: %o", async ([more, why]) => {
  const { post } = await serveReply(HELLO, "cba");
  const response = await post("/v1/chat/completions/tokens", { model: MODEL, messages: HELLO, ...more });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(why);
});
