/**
 * Tests the training protocol with a real vLLM. Another implementation of the same model checks it: at lag 0 it must
 * compute, for every trainable token, the logprob that was sent with it. Then each setting that this depends on is
 * broken in turn, by a proxy in front of the engine or by the engine's flags, and the same check must detect it.
 *
 * The engine keeps the model's own generation config, which sets a penalty and a truncated distribution: the harder
 * case.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { freePort } from "../../src/local/ports.ts";
import { testPort } from "../local/test-port.ts";
import { type Engine, KEY, PROCESSED, startEngine } from "./engine.ts";
import { type Body, type RewritingProxy, startProxy } from "./proxy.ts";
import { type Finding, type Held, Stand, table } from "./stand.ts";

/**
 * The difference that float32 causes without any fault (docs/vllm.md); everything broken here is off by a fifth or
 * more.
 */
const EXACT = 2e-5;
const vllm = inject("vllm");

describe.skipIf(vllm === null)("with a real vLLM", () => {
  let [engine, stand, proxy]: [Engine, Stand, RewritingProxy] = [] as never;

  beforeAll(async () => {
    if (vllm === null) return;
    engine = await startEngine(vllm, await freePort(testPort(10)), PROCESSED);
    proxy = await startProxy(engine.url);
    stand = await Stand.start(vllm);
    await stand.attach("direct", engine.url);
    await stand.attach("proxied", proxy.url);
  });
  afterAll(async () => {
    process.stdout.write(`vLLM ${engine.version}\n${table(stand.findings)}`);
    await stand.stop();
    await proxy.stop();
    await engine.stop();
  });

  /** Without a proxy. */
  const direct = (held: Omit<Held, "engine" | "endpoint">) =>
    stand.train({ ...held, engine: engine.url, endpoint: "direct" });

  /** `rewrite` changes the requests of a rollout's turns; the run's probe sees the engine unchanged. */
  async function broken(held: Omit<Held, "engine" | "endpoint">, rewrite: (body: Body) => Body): Promise<Finding> {
    proxy.leadTo(engine.url, (body) => (isTurn(body) ? rewrite(body) : body));
    const finding = await stand.train({ ...held, engine: engine.url, endpoint: "proxied" });
    expect(proxy.rewritten).toBeGreaterThan(0);
    return finding;
  }

  describe.each([1, 0.7])("at temperature %d the ratio of every token is 1", (temperature) => {
    test.each(["once", "turns", "tools"] as const)("in an environment played %s", async (play) => {
      const name = `${play}, T = ${temperature}`;
      const finding = await direct({ name, play, temperature });
      expectExact(finding, 2);
      if (play === "turns") expect(finding.turns).toBeGreaterThan(2 * 16);
      if (play === "tools") expect(finding.answered).toBeGreaterThan(0);
    });
  });

  test("also after a reset to an older version, whose numbers name other weights from then on", async () => {
    const name = "tools, T = 1, reset to version 0 after 2";
    const held = { play: "tools", temperature: 1, steps: 3, reset_after: 2 } as const;
    const finding = await direct({ name, ...held });
    expectExact(finding, 5);
    expect(finding.batches.map(({ generation, step }) => [generation, step])).toEqual([
      ...[
        [0, 1],
        [0, 2],
      ],
      ...[
        [1, 1],
        [1, 2],
        [1, 3],
      ],
    ]);
  });

  const kept = {
    play: "tools",
    temperature: 1,
    steps: 3,
    reset_after: 2,
    keep_prefix_cache: true,
  } as const;

  test("the salt alone keeps weights apart if the prefix cache is never reset", async () => {
    const name = "the same, prefix cache kept";
    expectExact(await direct({ name, ...kept }), 5);
  });

  test("a proxy that rewrites nothing changes nothing", async () => {
    proxy.leadTo(engine.url);
    const held = { name: "tools, T = 0.7, proxied", play: "tools", temperature: 0.7 } as const;
    expectExact(await stand.train({ ...held, engine: engine.url, endpoint: "proxied" }), 2);
    expect(proxy.rewritten).toBe(0);
  });

  test("strict tools are detected", async () => {
    const name = "broken: tools sent as strict";
    const finding = await broken({ name, play: "tools", temperature: 1 }, (body) => ({
      ...body,
      tools: (body["tools"] as { function: object }[]).map((tool) => ({
        ...tool,
        function: { ...tool.function, strict: true },
      })),
    }));
    expectWrong(finding);
  });

  test("penalties that are not sent are detected", async () => {
    const name = "broken: penalties not sent";
    const finding = await broken(
      { name, play: "once", temperature: 1 },
      without("repetition_penalty", "presence_penalty", "frequency_penalty"),
    );
    expectWrong(finding);
  });

  test("a distribution that the server truncates is detected", async () => {
    const name = "broken: top_p, top_k, min_p not sent";
    const finding = await broken({ name, play: "once", temperature: 1 }, without("top_p", "top_k", "min_p"));
    expectWrong(finding);
  });

  test("a salt that is only the version is detected", async () => {
    const name = "broken: salt is the bare version, cache kept";
    const finding = await broken({ name, ...kept }, (body) => ({
      ...body,
      cache_salt: /\d+$/.exec(String(body["cache_salt"]))?.[0],
    }));
    expectWrong(finding);
  });

  test("an absent salt is detected", async () => {
    const name = "broken: no salt, cache kept";
    expectWrong(await broken({ name, ...kept }, without("cache_salt")));
  });

  test("the key is required for requests to the model, and not for those that change its weights", async () => {
    const status = async (path: string, method = "GET") => (await fetch(engine.url + path, { method })).status;
    expect(await status("/v1/models")).toBe(401);
    expect(await status("/is_paused")).toBe(200);
    expect(await status("/reset_prefix_cache", "POST")).toBe(200);
    expect(await status("/metrics")).toBe(200);
    const asked = { headers: { authorization: `Bearer ${KEY}` } };
    expect((await fetch(`${engine.url}/v1/models`, asked)).status).toBe(200);
  });

  test("the probe proves everything that can be proven", async () => {
    const { capabilities } = await stand.client.endpoints.get("direct");
    expect(capabilities).toMatchObject({ probed_model: "tiny", tools: true, error: null });
    expect(capabilities?.exactness).toEqual({
      logprobs_mode: "processed",
      penalties: true,
      neutral_defaults: false,
      one_logprob_a_token: true,
      refused: null,
    });
  });

  test("a server that ignores penalties is refused, with the flag to start it with", async () => {
    proxy.leadTo(engine.url, without("repetition_penalty"));
    await expectRefused("proxied", "--generation-config vllm");
  });

  describe("with raw logprobs", () => {
    beforeAll(async () => {
      if (vllm === null) return;
      await engine.stop();
      engine = await startEngine(vllm, await freePort(testPort(11)), []);
    });

    test("a training run is refused, with the flag to start the engine with", async () => {
      await stand.attach("raw", engine.url);
      await expectRefused("raw", "--logprobs-mode processed_logprobs");
    });

    test("a run whose probe was deceived is detected", async () => {
      proxy.leadTo(engine.url, (body) => (isTurn(body) ? body : without("top_logprobs")(body)));
      const held = { play: "once", temperature: 0.7, engine: engine.url } as const;
      const name = "broken: raw logprobs, T = 0.7";
      expectWrong(await stand.train({ name, ...held, endpoint: "proxied" }));
    });
  });

  /** No rollout is played. */
  async function expectRefused(endpoint: string, words: string): Promise<void> {
    const asked = stand.request({ play: "once", temperature: 0.7, endpoint });
    await expect(stand.client.runs.create(asked)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(words),
    });
  }
});

/** Recognised by its salt, which names a run. */
function isTurn({ cache_salt }: Body): boolean {
  return String(cache_salt).startsWith("run_");
}

function expectExact(finding: Finding, batches: number): void {
  expect(finding.batches.map(({ lag }) => lag)).toEqual(Array(batches).fill(0));
  expect(finding.samples).toBeGreaterThanOrEqual(16 * batches);
  expect(finding.tokens).toBeGreaterThan(finding.samples);
  expect(finding.worst).toBeLessThan(EXACT);
}

function expectWrong({ worst, beyond }: Finding): void {
  expect(worst).toBeGreaterThan(EXACT);
  expect(beyond).toBeGreaterThan(0);
}

function without(...names: readonly string[]) {
  return (body: Body): Body => Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}
