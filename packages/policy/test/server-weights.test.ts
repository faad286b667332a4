/** New weights while requests run, and what the server reports about itself. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { bytesFromWeights, WEIGHT_COUNT } from "../weights.ts";
import { randomWeights, weightsThatSay } from "./scripted-weights.ts";
import { MODEL, reply, type Served, serve, serveReply } from "./served-policy.ts";

const HELLO = [{ role: "user" as const, content: "Reverse: abc" }];

function push({ url }: Served, weights: Float32Array, version?: string): Promise<Response> {
  return fetch(`${url}/update_weights`, {
    method: "POST",
    headers: {
      "content-type": "application/octet-stream",
      ...(version !== undefined && { "x-weight-version": version }),
    },
    body: new Uint8Array(bytesFromWeights(weights)),
  });
}

async function ask({ post }: Served, fields: object = {}) {
  const response = await post("/v1/chat/completions", { messages: HELLO, ...fields });
  return (await response.json()) as {
    choices: { message: { content: string } }[];
    weight_version: string;
    first_weight_version: string;
  };
}

test("requests after a change of weights are sampled with the new weights", async () => {
  const served = await serveReply(HELLO, "old");
  expect((await ask(served)).choices[0]?.message.content).toBe("old");
  const weights = weightsThatSay([reply(HELLO, "new")]);
  const sha256 = createHash("sha256").update(bytesFromWeights(weights)).digest("hex");
  const taken = { weight_version: "2", sha256 };
  const response = await push(served, weights, "2");
  expect(await response.json()).toEqual({ message: "Weights updated", ...taken });
  expect(await (await fetch(`${served.url}/weight_info`)).json()).toEqual(taken);
  const answered = await ask(served);
  expect(answered.choices[0]?.message.content).toBe("new");
  expect([answered.first_weight_version, answered.weight_version]).toEqual(["2", "2"]);
});

test("a running request continues with new weights and reports both", async () => {
  const served = await serve(randomWeights(), 1);
  const long = ask(served, { n: 8, max_tokens: 100, ignore_eos: true });
  await expect.poll(() => served.engine.stats().running, { interval: 1 }).toBe(1);
  await push(served, randomWeights(2), "2");
  const { first_weight_version, weight_version } = await long;
  expect([first_weight_version, weight_version]).toEqual(["first", "2"]);
});

test("weights of a wrong length, without a name or not finite are refused and change nothing", async () => {
  const served = await serve(randomWeights());
  const short = await push(served, new Float32Array(3), "2");
  expect(short.status).toBe(400);
  const { error } = (await short.json()) as { error: { message: string } };
  expect(error.message).toContain(String(WEIGHT_COUNT * 4));
  expect(error.message).toContain("12");
  expect((await push(served, randomWeights(2))).status).toBe(400);
  expect((await push(served, randomWeights(2).fill(Number.NaN), "2")).status).toBe(400);
  expect(served.engine.weightVersion).toBe("first");
});

test("health, version, load and metrics answer under vLLM's names", async () => {
  const served = await serveReply(HELLO, "cba");
  await ask(served);
  await ask(served);
  const get = (path: string) => fetch(served.url + path);
  expect([(await get("/health")).status, (await get("/ping")).status]).toEqual([200, 200]);
  expect(await (await get("/version")).json()).toEqual({ version: expect.any(String) });
  expect(await (await get("/load")).json()).toEqual({ server_load: 0 });
  const text = await (await get("/metrics")).text();
  const value = (name: string) =>
    Number(new RegExp(`^${name}\\{model_name="${MODEL}",engine="0"\\} (\\S+)$`, "m").exec(text)?.[1]);
  expect(value("vllm:num_requests_running")).toBe(0);
  expect(value("vllm:num_requests_waiting")).toBe(0);
  expect(value("vllm:kv_cache_usage_perc")).toBe(0);
  expect(value("vllm:prompt_tokens_total")).toBe(14);
  expect(value("vllm:generation_tokens_total")).toBe(8);
  expect(value("vllm:prefix_cache_queries_total")).toBe(14);
  expect(value("vllm:prefix_cache_hits_total")).toBeGreaterThan(0);
  expect(text).toContain('rollcall:weight_info{weight_version="first"} 1');
});

test("1,000 requests at once are all answered", async () => {
  const served = await serve(randomWeights(), 64);
  const all = await Promise.all(
    Array.from({ length: 1000 }, (_, seed) =>
      served.client.chat.completions.create({ model: MODEL, messages: HELLO, seed, max_tokens: 8 }),
    ),
  );
  expect(all.every(({ choices }) => choices.length === 1)).toBe(true);
  expect(served.engine.stats()).toMatchObject({ requests: 1000, running: 0, waiting: 0 });
});
