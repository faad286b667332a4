import { afterEach, describe, expect, test } from "vitest";
import { initInfoOf, PHASES, pauseEngine, resumeEngine } from "../../src/clients/engine.ts";
import type { Engine } from "../../src/clients/engine-calls.ts";
import { loadWeights, unloadAdapter, type WeightLoad } from "../../src/clients/engine-load.ts";
import { checkEngine, probeEngine } from "../../src/clients/engine-probe.ts";
import { ownNetwork } from "../../src/clients/outgoing.ts";
import { type FakeVllm, type FakeVllmOptions, startFakeVllm } from "../fakes/fake-vllm.ts";

const KEY = "sk-engine-3f9a71c2d4";
const NOW = 1_792_000_000_000;
const IN_TIME = 5000;
/** So long a call waits that is to get no answer. */
const BRIEF = 60;
const fakes: FakeVllm[] = [];
afterEach(async () => {
  for (const fake of fakes.splice(0)) await fake.stop();
});

async function start(options: FakeVllmOptions = {}): Promise<FakeVllm> {
  const fake = await startFakeVllm({ api_key: KEY, ...options });
  fakes.push(fake);
  return fake;
}

function reach({ base_url }: FakeVllm, more: Partial<Engine> = {}): Engine {
  return { name: "gpu-0", base_url, api_key: KEY, control_url: null, control_key: null, send: ownNetwork, ...more };
}

const RELOAD: WeightLoad = { mode: "reload", location: "/weights/1", label: null };
const INIT = { master_address: "trainer", master_port: 1, rank_offset: 1, world_size: 2 };
const UPDATE_INFO = { names: ["w"], dtype_names: ["bfloat16"], shapes: [[1]] };
const TRANSFER: WeightLoad = {
  ...{ mode: "transfer", update_info: UPDATE_INFO, init_info: INIT, initialized: false, label: "run.0.1" },
};

/** As a fleet does it. */
async function swap(fake: FakeVllm, load: WeightLoad) {
  const engine = reach(fake);
  const replies = [];
  for (const phase of PHASES[load.mode]) {
    if (phase === "pause")
      replies.push(await pauseEngine(engine, { mode: load.mode, pause: "wait", timeout_ms: IN_TIME }));
    if (phase === "update") replies.push(await loadWeights(engine, load, IN_TIME));
    if (phase === "resume") replies.push(await resumeEngine(engine, { mode: load.mode, timeout_ms: IN_TIME }));
  }
  return replies;
}

async function sample({ base_url }: FakeVllm, model = "policy"): Promise<number> {
  const reply = await fetch(`${base_url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }], cache_salt: "s" }),
  });
  await reply.text();
  return reply.status;
}

const DONE = { kind: "done" };

describe("new weights", () => {
  test.each(["a", "b", "c", "d", "e"] as const)("are read from a path by an engine of age %s", async (era) => {
    const fake = await start({ era });
    await sample(fake);
    expect(await swap(fake, RELOAD)).toEqual([DONE, DONE, DONE]);
    await sample(fake);
    expect(fake.calls).toMatchObject([{ weights: ["v0"] }, { weights: ["/weights/1"], stale_prefix: false }]);
    expect(fake.paused).toBeNull();
  });

  test.each(["b", "c", "d", "e"] as const)("are sent to an engine of age %s, whichever phases it has", async (era) => {
    const fake = await start({ era });
    fake.trainerSends("v1");
    expect(await swap(fake, TRANSFER)).toEqual([DONE, DONE, DONE]);
    expect(fake.weights).toBe("v1");
    fake.trainerSends("v2");
    expect(await swap(fake, { ...TRANSFER, initialized: true })).toEqual([DONE, DONE, DONE]);
    expect(fake.weights).toBe("v2");
    expect(fake.requests.filter((sent) => sent.includes("init_weight"))).toHaveLength(1);
  });

  test("are sent to an engine that has forgotten its group", async () => {
    const fake = await start({ era: "c" });
    fake.trainerSends("v1");
    expect(await swap(fake, { ...TRANSFER, initialized: true })).toEqual([DONE, DONE, DONE]);
    expect(fake.weights).toBe("v1");
  });

  test("are loaded once, under a name of their own, however often that is asked", async () => {
    const fake = await start({ era: "a" });
    const load = { mode: "lora_versioned", adapter: "policy.g0@1", location: "/adapters/1" } as const;
    expect(await swap(fake, load)).toEqual([DONE]);
    expect(await swap(fake, load)).toEqual([DONE]);
    expect(await sample(fake, "policy.g0@1")).toBe(200);
    expect(fake.calls[0]?.weights).toEqual(["/adapters/1"]);
    expect(await unloadAdapter(reach(fake), "policy.g0@1", IN_TIME)).toEqual(DONE);
    expect(await unloadAdapter(reach(fake), "policy.g0@1", IN_TIME)).toEqual(DONE);
    expect(fake.adapters.size).toBe(0);
  });

  test.each(["a", "e"] as const)("go over an adapter's name on an engine of age %s", async (era) => {
    const fake = await start({ era });
    for (const location of ["/adapters/1", "/adapters/2"]) {
      const load = { mode: "lora_in_place", adapter: "policy-lora", location } as const;
      expect(await swap(fake, load)).toEqual([DONE, DONE, DONE]);
      await sample(fake, "policy-lora");
    }
    expect(fake.calls).toMatchObject([
      { weights: ["/adapters/1"], stale_prefix: false },
      { weights: ["/adapters/2"], stale_prefix: false },
    ]);
  });

  test("are read by prime-rl's own server, which is told apart from vLLM both ways", async () => {
    const [theirs, vllm] = [await start({ era: "prime_rl" }), await start({ era: "e" })];
    const load = { mode: "prime_rl", location: "/broadcasts/step_1" } as const;
    expect(await swap(theirs, load)).toEqual([DONE, DONE, DONE]);
    expect(theirs.weights).toBe("/broadcasts/step_1");
    const [, refused, resumed] = await swap(vllm, load);
    expect([refused, resumed]).toMatchObject([{ kind: "refused", message: expect.stringContaining("gpu-0") }, DONE]);
    const [, wrong] = await swap(theirs, TRANSFER);
    expect(wrong).toEqual({ kind: "refused", message: "gpu-0: it is prime-rl's own server: its mode is prime_rl" });
    expect([vllm.weights, theirs.weights]).toEqual(["v0", "/broadcasts/step_1"]);
  });

  test("wait for the calls that are under way, and hold back those that come", async () => {
    const fake = await start();
    const release = fake.hold();
    const early = sample(fake);
    await expect.poll(() => fake.inFlight, { interval: 2 }).toBe(1);
    const swapped = swap(fake, RELOAD);
    await expect.poll(() => fake.paused, { interval: 2 }).toBe("wait");
    const late = sample(fake);
    release();
    expect(await swapped).toEqual([DONE, DONE, DONE]);
    await Promise.all([early, late]);
    expect(fake.calls.map(({ weights }) => weights)).toEqual([["v0"], ["/weights/1"]]);
  });
});

describe("a call that changes weights", () => {
  test("may have been heard where it gets no answer, and surely was not where nobody listens", async () => {
    const fake = await start();
    fake.breakRoute("/collective_rpc", "hang");
    expect(await loadWeights(reach(fake), RELOAD, BRIEF)).toEqual({
      ...{ kind: "unknown", message: "gpu-0: POST /collective_rpc: no answer in time" },
    });
    fake.breakRoute("/collective_rpc", "lost");
    expect(await loadWeights(reach(fake), RELOAD, IN_TIME)).toMatchObject({ kind: "unknown" });
    expect(fake.weights).toBe("/weights/1");
    const gone = await start();
    await gone.stop();
    const nobody = reach(fake, { control_url: gone.url });
    expect(await loadWeights(nobody, RELOAD, IN_TIME)).toMatchObject({ kind: "unreached" });
  });

  test("has surely changed nothing where the engine refuses it, and says which route of which replica did", async () => {
    const fake = await start({ dev: false, lora: false });
    const dev = "start the engine with VLLM_SERVER_DEV_MODE=1";
    expect(await pauseEngine(reach(fake), { mode: "reload", pause: "wait", timeout_ms: IN_TIME })).toEqual({
      ...{ kind: "refused", message: `gpu-0: POST /pause answered 404: Not Found: ${dev}` },
    });
    expect(await loadWeights(reach(fake), RELOAD, IN_TIME)).toEqual({
      ...{ kind: "refused", message: `gpu-0: POST /collective_rpc answered 404: Not Found: ${dev}` },
    });
    const lora = { mode: "lora_versioned", adapter: "a@1", location: "/a" } as const;
    expect(await loadWeights(reach(fake), lora, IN_TIME)).toMatchObject({
      ...{ kind: "refused", message: expect.stringContaining("--enable-lora") },
    });
    // Blocks of the old adapter could not be dropped.
    const inPlace = { ...lora, mode: "lora_in_place" } as const;
    expect(await loadWeights(reach(fake), inPlace, IN_TIME)).toMatchObject({
      ...{ kind: "refused", message: expect.stringContaining("/reset_prefix_cache") },
    });
  });

  test("is half done where a later part of it fails, and says so", async () => {
    const fake = await start({ era: "c" });
    fake.trainerSends("v1");
    fake.breakRoute("/update_weights", "fail");
    expect(await loadWeights(reach(fake), TRANSFER, IN_TIME)).toMatchObject({ kind: "unknown" });
    expect(fake.weights).toBe("parts of v0");
    // Another attempt takes up what was started.
    expect(await loadWeights(reach(fake), TRANSFER, IN_TIME)).toEqual(DONE);
    expect(fake.weights).toBe("v1");
    fake.breakRoute("/reset_prefix_cache", { status: 404 });
    expect(await loadWeights(reach(fake), RELOAD, IN_TIME)).toMatchObject({ kind: "unknown" });
  });

  test("is not believed where the engine says that it has other weights", async () => {
    const fake = await start({ era: "e" });
    fake.trainerSends("v1");
    fake.saysWeights = "run.0.0";
    expect(await loadWeights(reach(fake), TRANSFER, IN_TIME)).toEqual({
      ...{ kind: "unknown", message: 'gpu-0: GET /weight_info answered weight_version "run.0.0", not run.0.1' },
    });
    expect(await loadWeights(reach(fake), { ...RELOAD, label: "run.0.2" }, IN_TIME)).toMatchObject({ kind: "unknown" });
    fake.saysWeights = null;
    expect(await loadWeights(reach(fake), { ...RELOAD, label: "run.0.2" }, IN_TIME)).toEqual(DONE);
  });

  test("shows its key to nobody: an engine that repeats it is quoted without", async () => {
    const fake = await start();
    fake.breakRoute("/pause", { status: 403, body: { error: { message: `no rights: ${KEY}` } } });
    expect(await pauseEngine(reach(fake), { mode: "reload", pause: "wait", timeout_ms: IN_TIME })).toEqual({
      ...{ kind: "refused", message: "gpu-0: POST /pause answered 403: no rights: [key]" },
    });
  });
});

describe("a probe", () => {
  test.each(["a", "b", "c", "d", "e", "prime_rl"] as const)("finds what an engine of age %s can do", async (era) => {
    const fake = await start({ era, version: "9.9.9" });
    const seen = await probeEngine(reach(fake), { model: null, now: NOW });
    expect(seen).toMatchObject({ error: null, version: "9.9.9", models: ["policy"], token_ids: true, logprobs: true });
    expect(seen.exactness?.logprobs_mode).toBe("processed");
    expect(seen.routes.includes("/start_weight_update")).toBe(["c", "d", "e"].includes(era));
    expect(seen.routes.includes("/init_broadcaster")).toBe(era === "prime_rl");
    expect(seen.weight_info).toBe(era === "e" ? "default" : null);
  });

  test("asks for each route where the list of them is hidden, and changes nothing by it", async () => {
    const fake = await start({ era: "e" });
    const { routes } = await probeEngine(reach(fake), { model: null, now: NOW });
    fake.breakRoute("/openapi.json", { status: 404 }, 9);
    const asked = await probeEngine(reach(fake), { model: null, now: NOW });
    expect(asked.routes).toEqual(routes);
    expect(fake.requests.filter((sent) => sent.startsWith("POST") && !sent.includes("/chat/"))).toEqual([]);
  });

  test("says what is wrong with an engine that answers 404", async () => {
    const fake = await start();
    fake.breakRoute("/v1/chat/completions", { status: 404 }, 9);
    expect(await probeEngine(reach(fake), { model: null, now: NOW })).toMatchObject({
      ...{ chat: false, error: "404 for POST /chat/completions" },
    });
  });
});

describe("a check", () => {
  test("tells a restart, old weights and adapters that are gone from what was there", async () => {
    const fake = await start({ era: "e" });
    const load = { mode: "lora_versioned", adapter: "policy@1", location: "/adapters/1" } as const;
    await swap(fake, load);
    await swap(fake, { ...RELOAD, label: "run.0.1" });
    const before = await checkEngine(reach(fake));
    expect(before).toMatchObject({
      ...{ kind: "alive", models: ["policy", "policy@1"], weights: "run.0.1", paused: false },
    });
    fake.restart();
    const after = await checkEngine(reach(fake));
    expect(after).toMatchObject({ kind: "alive", models: ["policy"], weights: "default" });
    expect(after).not.toMatchObject({ started_at: "started_at" in before ? before.started_at : null });
  });

  test("finds one down that is gone, hangs, refuses the key or has a dead engine behind it", async () => {
    const fake = await start();
    fake.breakRoute("/health", { status: 503 });
    expect(await checkEngine(reach(fake))).toEqual({ kind: "down", message: "gpu-0: GET /health answered 503" });
    fake.breakRoute("/v1/models", "hang");
    expect(await checkEngine(reach(fake), { deadline_ms: BRIEF })).toEqual({
      ...{ kind: "down", message: "gpu-0: GET /models: no answer in time" },
    });
    expect(await checkEngine(reach(fake, { api_key: null }))).toMatchObject({ kind: "down" });
    fake.die();
    expect(await checkEngine(reach(fake))).toMatchObject({ kind: "down" });
    fake.restart();
    expect(await checkEngine(reach(fake))).toMatchObject({ kind: "alive" });
  });

  test("asks no more than the models of one whose control side is closed", async () => {
    const fake = await start();
    for (const route of ["/health", "/metrics", "/weight_info", "/is_paused"]) fake.breakRoute(route, { status: 404 });
    expect(await checkEngine(reach(fake))).toEqual({
      ...{ kind: "alive", models: ["policy"], started_at: null, weights: null, paused: null },
    });
  });
});

test("what an engine is initialised with is everybody's, and its own over it", () => {
  const info = { master_address: "trainer", by_replica: { "gpu-1": { rank_offset: 5 } } };
  expect(initInfoOf(info, "gpu-0")).toEqual({ master_address: "trainer" });
  expect(initInfoOf(info, "gpu-1")).toEqual({ master_address: "trainer", rank_offset: 5 });
  expect(initInfoOf(undefined, "gpu-1")).toBeNull();
});
