/** Calls whose prompt is token ids: what is sent, and which replies are not used. */
import { expect, test } from "vitest";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { decidePrompt } from "../../../src/kernel/clients/tokenize.ts";
import { type Answer, type Fault, type ModelRequest, startScriptedModel } from "../../fakes/scripted-model.ts";
import { withTokens } from "../../fakes/token-model.ts";

const user = (content: string) => ({ role: "user" as const, content });
const said = (content: string) => ({ role: "assistant" as const, content });
const CONVERSATIONS = {
  before: [user("q")],
  one: [user("q"), said("Yes"), user("again")],
  other: [user("q"), said("No"), user("again")],
};
/** Ends as an answer of the fake engine does. */
const LAST = [1, 255];
const AGAIN = [257, ...new TextEncoder().encode("again"), 255, 258];

interface Served {
  readonly where: Parameters<typeof decidePrompt>[0];
  readonly asked: readonly ModelRequest[];
}

async function serving<T>(reply: (request: ModelRequest) => Answer, use: (served: Served) => Promise<T>): Promise<T> {
  const asked: ModelRequest[] = [];
  const model = await startScriptedModel({
    reply: (request) => {
      asked.push(request);
      return reply(request);
    },
  });
  try {
    const { signal } = new AbortController();
    return await use({ where: { base_url: `${model.url}/`, api_key: "k", idempotency_key: "key", signal }, asked });
  } finally {
    await model.stop();
  }
}

const TO = {
  model: "m",
  sampling: { temperature: 1, extra_body: { chat_template_kwargs: { a: 1 }, chat_template: "t", top_k: 5 } },
};

test("/tokenize is beside /v1, and gets what the template reads and no sampling arguments", async () => {
  await serving(
    () => "",
    async ({ where, asked }) => {
      const decided = await decidePrompt(where, { ...TO, tools: [] }, LAST, CONVERSATIONS);
      expect(decided).toMatchObject({ kind: "decided", token_prompt: { max_model_len: 8192 } });
      const template = { chat_template_kwargs: { a: 1 }, chat_template: "t", model: "m" };
      expect(asked.map(({ path, body }) => [path, body])).toEqual([
        ["/tokenize", { ...template, messages: CONVERSATIONS.before, add_generation_prompt: false }],
        ["/tokenize", { ...template, messages: CONVERSATIONS.one, add_generation_prompt: true }],
        ["/tokenize", { ...template, messages: CONVERSATIONS.other, add_generation_prompt: true }],
      ]);
      const keys = asked.map(({ headers }) => headers["idempotency-key"]);
      expect(keys).toEqual(["before", "one", "other"].map((name) => `key:tokenize:${name}`));
    },
  );
});

test.for([
  { fault: { kind: "status", status: 404 }, comes: { kind: "decided" } },
  { fault: { kind: "status", status: 400 }, comes: { kind: "decided" } },
  { fault: { kind: "status", status: 403 }, comes: { kind: "decided" } },
  { fault: { kind: "garbage", text: '{"tokens": ["a"]}' }, comes: { kind: "decided" } },
  { fault: { kind: "garbage", text: '{"tokens": [1.5]}' }, comes: { kind: "decided" } },
  { fault: { kind: "reset" }, comes: { kind: "failed", retryable: true } },
  {
    fault: { kind: "status", status: 429, headers: { "retry-after": "3" } },
    comes: { kind: "failed", retryable: true, status: 429, retry_after_ms: 3000 },
  },
] satisfies readonly { readonly fault: Fault; readonly comes: object }[])(
  "a refused /tokenize leaves the prompt to messages, an unavailable one fails the call: %o",
  async ({ fault, comes }) => {
    await serving(
      () => ({ fault }),
      async ({ where, asked }) => {
        const outcome = await decidePrompt(where, TO, LAST, CONVERSATIONS);
        expect(outcome).toMatchObject(comes);
        if (outcome.kind === "decided") expect(outcome.token_prompt).toEqual({ messages: "tokenize_refused" });
        // No token was sampled: nothing is charged, and no cost is unknown.
        else expect(Object.keys(outcome)).not.toEqual(expect.arrayContaining(["lost"]));
        expect(asked).toHaveLength(1);
      },
    );
  },
);

test("a call that is aborted while it waits for /tokenize is aborted", async () => {
  const controller = new AbortController();
  const hang = () => {
    controller.abort();
    return { fault: { kind: "hang" } } as const;
  };
  await serving(hang, async ({ where }) => {
    const outcome = await decidePrompt({ ...where, signal: controller.signal }, TO, LAST, CONVERSATIONS);
    expect(outcome).toEqual({ kind: "aborted" });
  });
});

const PROMPT = [257, 104, 255, ...AGAIN];
const CALL = { model: "m", messages: [user("h"), user("again")], tools: [], sampling: { logprobs: true } };

test.for([{ chat: true }, {}])(
  "the ids that were sent are those of the response, whatever is echoed: %o",
  async (form) => {
    const token_prompt = { ids: PROMPT, max_model_len: 100, ...form };
    const reply = ({ messages, body }: ModelRequest) => withTokens({ content: "ok" }, messages, body);
    const silent = (request: ModelRequest) => ({ ...reply(request), prompt_token_ids: undefined });
    for (const answer of [reply, silent]) {
      const outcome = await serving(
        (request) => JSON.parse(JSON.stringify(answer(request))),
        ({ where }) => callModel({ ...where, ...CALL, token_prompt }),
      );
      expect(outcome).toMatchObject({
        kind: "answered",
        response: { prompt_ids: PROMPT, completion_ids: [111, 107, 255] },
      });
    }
    const other = (request: ModelRequest) => ({ ...reply(request), prompt_token_ids: [...PROMPT, 1] });
    const outcome = await serving(other, ({ where }) => callModel({ ...where, ...CALL, token_prompt }));
    expect(outcome).toMatchObject({
      ...{ kind: "failed", retryable: true },
      error: { message: "the engine's prompt_token_ids are not the token ids of the prompt that was sent" },
    });
  },
);
