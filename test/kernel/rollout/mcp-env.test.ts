/** An environment of MCP tools on the whole platform, with the official SDK's server on loopback. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, MCPEnv } from "../../../src/core/entry.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script, type Turns } from "../script.ts";

const shopping = defineEnvironment({
  args: z.strictObject({ url: z.string().default(env.MCP_URL) }),
  needs: ["fetch"],
  build: ({ url }) =>
    new MCPEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Buy tea." }]),
      setupState: () => ({ bought: "" }),
      servers: { shop: { url } },
      postRollout: async (state) => {
        state.bought = String(await state.live.mcp.call("shop", "basket", {}));
      },
      rubric: { rewards: { tea: ({ state }) => state.bought === "tea, tea\nThat is all." } },
    }),
});

let platform: TestApi;
beforeAll(async () => {
  const { args, needs, load } = shopping;
  registerOnce({ id: "shopping", version: "1.0.0", digest: "sha256:shop", args, needs, load });
  platform = await openPlatform();
});

const call = (name: string, args: object = {}) => ({
  tool_calls: [{ id: `call_${name}`, name, arguments: { ...args } }],
});
const photo = [
  { type: "text", text: "Here:" },
  { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
  { type: "text", text: "[audio, audio/wav]" },
  { type: "text", text: "a teapot" },
];

test("a rollout calls the tools of an MCP server, and a kill in the middle keeps its session", async () => {
  const turns: Turns = [
    call("add", { item: "tea", count: 2 }),
    { fault: { kind: "hang" }, times: 1, reply: call("photo") },
    "Done.",
  ];
  const model = script(turns);
  const run = await platform.start({ environment: "shopping", model, num_examples: 1 });
  await requestsOf(model, 2);
  await abortAllDurableObjects();
  expect(await platform.ended(run.id)).toMatchObject({ counts: { scored: 1 } });
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout).toMatchObject({ outcome: "scored", reward: 1, cleanup_errors: [] });
  const said = rollout.turns.flatMap(({ prompt }) => prompt.append.filter((m) => m["role"] === "tool"));
  expect(said.map((message) => message["content"])).toEqual(["2 in the basket", photo]);
});

test("if a server leaves streams open the answer is still used, and the run ends at once", async () => {
  const model = script([call("add", { item: "tea", count: 2 }), "Done."]);
  const environment_args = { url: `${env.MCP_URL}?open` };
  const run = await platform.start({ environment: "shopping", environment_args, model, num_examples: 1 });
  expect(await platform.ended(run.id)).toMatchObject({ counts: { scored: 1 } });
  expect(await platform.rollout(rolloutAt(run.id))).toMatchObject({ outcome: "scored", reward: 1, cleanup_errors: [] });
});
