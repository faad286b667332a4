import { afterEach, describe, expect, test } from "vitest";
import type { Engine } from "../../src/fleets/engine-calls.ts";
import { loadWeights, unloadAdapter, type WeightLoad } from "../../src/fleets/engine-load.ts";
import { pauseEngine, resumeEngine } from "../../src/fleets/engine-pause.ts";
import { checkEngine, probeEngine } from "../../src/fleets/engine-probe.ts";
import { ownNetwork } from "../../src/kernel/clients/outgoing.ts";
import { type FakeVllm, type FakeVllmOptions, startFakeVllm } from "../fakes/fake-vllm.ts";

const KEY = "sk-engine-3f9a71c2d4";
const NOW = 1_792_000_000_000;
const IN_TIME = 5000;
/** How long a call waits that must get no answer. */
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

/** Loads whole weights, as a fleet does. */
async function swap(fake: FakeVllm, load: WeightLoad) {
  const engine = reach(fake);
  const paused = await pauseEngine(engine, { pause: "wait", timeout_ms: IN_TIME });
  const loaded = await loadWeights(engine, load, IN_TIME);
  return [paused, loaded, await resumeEngine(engine, IN_TIME)];
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

test("each reply to a probe is read and parsed within the memory and the computing time of its organisation", async () => {
  const [grown, parsed]: [number[], number[]] = [[], []];
  let [opened, left] = [0, 0];
  const openReservation = () => {
    opened += 1;
    return {
      most: 1,
      isWaiting: () => false,
      grow: (characters: number) => {
        grown.push(characters);
        return null;
      },
      turn: (characters: number) => {
        parsed.push(characters);
        return null;
      },
      leave: () => {
        left += 1;
      },
    };
  };
  const junk = JSON.stringify({ data: Array.from({ length: 20_000 }, (_, id) => ({ id: `m${id}` })) });
  const send = async () => new Response(junk);
  const engine = { name: "gpu-0", base_url: "http://engine/v1", api_key: null, control_url: null, control_key: null };
  await checkEngine({ ...engine, send, openReservation });
  expect(parsed).toEqual([1, 2, 3, 4, 5].map(() => junk.length));
  await probeEngine({ ...engine, send, openReservation }, { model: null, now: NOW });
  expect(parsed.length).toBeGreaterThan(9);
  expect(new Set(parsed)).toEqual(new Set([junk.length]));
  expect(Math.max(...grown)).toBe(junk.length);
  expect([opened, left]).toEqual([parsed.length, parsed.length]);
});

describe("new weights", () => {
  test.each(["a", "b", "c"] as const)("are loaded from a path by an engine of age %s", async (era) => {
    const fake = await start({ era });
    await sample(fake);
    expect(await swap(fake, RELOAD)).toEqual([DONE, DONE, DONE]);
    await sample(fake);
    expect(fake.calls).toMatchObject([{ weights: ["v0"] }, { weights: ["/weights/1"], stale_prefix: false }]);
    expect(fake.paused).toBeNull();
  });

  test("are loaded once, under their own name, however often that is requested", async () => {
    const fake = await start({ era: "a" });
    const load = { mode: "lora_versioned", adapter: "policy.g0@1", location: "/adapters/1" } as const;
    expect(await loadWeights(reach(fake), load, IN_TIME)).toEqual(DONE);
    expect(await loadWeights(reach(fake), load, IN_TIME)).toEqual(DONE);
    expect(await sample(fake, "policy.g0@1")).toBe(200);
    expect(fake.calls[0]?.weights).toEqual(["/adapters/1"]);
    expect(await unloadAdapter(reach(fake), "policy.g0@1", IN_TIME)).toEqual(DONE);
    expect(await unloadAdapter(reach(fake), "policy.g0@1", IN_TIME)).toEqual(DONE);
    expect(fake.adapters.size).toBe(0);
  });

  test("are loaded by prime-rl's own server, which is distinguished from vLLM", async () => {
    const [theirs, vllm] = [await start({ era: "prime_rl" }), await start()];
    const load = { mode: "prime_rl", location: "/broadcasts/step_1" } as const;
    expect(await swap(theirs, load)).toEqual([DONE, DONE, DONE]);
    expect(theirs.weights).toBe("/broadcasts/step_1");
    const [, refused, resumed] = await swap(vllm, load);
    expect([refused, resumed]).toMatchObject([{ kind: "refused", message: expect.stringContaining("gpu-0") }, DONE]);
    expect([vllm.weights, theirs.weights]).toEqual(["v0", "/broadcasts/step_1"]);
  });

  test("wait for the calls in flight, and delay new calls", async () => {
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
  test("may have arrived if there is no answer, and certainly did not if nothing listens", async () => {
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

  test("has certainly changed nothing if the engine refuses it, and the message names route and replica", async () => {
    const fake = await start({ dev: false, lora: false });
    const dev = "start the engine with VLLM_SERVER_DEV_MODE=1";
    expect(await pauseEngine(reach(fake), { pause: "wait", timeout_ms: IN_TIME })).toEqual({
      ...{ kind: "refused", message: `gpu-0: POST /pause answered 404: Not Found: ${dev}` },
    });
    expect(await loadWeights(reach(fake), RELOAD, IN_TIME)).toEqual({
      ...{ kind: "refused", message: `gpu-0: POST /collective_rpc answered 404: Not Found: ${dev}` },
    });
    const lora = { mode: "lora_versioned", adapter: "a@1", location: "/a" } as const;
    expect(await loadWeights(reach(fake), lora, IN_TIME)).toMatchObject({
      ...{ kind: "refused", message: expect.stringContaining("--enable-lora") },
    });
  });

  test("is half done if a later part of it fails, and reports that", async () => {
    const fake = await start();
    fake.breakRoute("/reset_prefix_cache", { status: 404 });
    expect(await loadWeights(reach(fake), RELOAD, IN_TIME)).toMatchObject({ kind: "unknown" });
  });

  test("is not trusted if the engine reports other weights", async () => {
    const fake = await start();
    const load = { ...RELOAD, label: "run.0.1" };
    fake.reportsWeights = "run.0.0";
    expect(await loadWeights(reach(fake), load, IN_TIME)).toEqual({
      ...{ kind: "unknown", message: 'gpu-0: GET /weight_info answered weight_version "run.0.0", not run.0.1' },
    });
    fake.reportsWeights = null;
    expect(await loadWeights(reach(fake), load, IN_TIME)).toEqual(DONE);
  });

  test("never shows the key: if an engine repeats it, it is removed", async () => {
    const fake = await start();
    fake.breakRoute("/pause", { status: 403, body: { error: { message: `no rights: ${KEY}` } } });
    expect(await pauseEngine(reach(fake), { pause: "wait", timeout_ms: IN_TIME })).toEqual({
      ...{ kind: "refused", message: "gpu-0: POST /pause answered 403: no rights: [key]" },
    });
  });
});

describe("a probe", () => {
  test.each(["a", "b", "c", "prime_rl"] as const)("finds what an engine of age %s can do", async (era) => {
    const fake = await start({ era, version: "9.9.9" });
    const seen = await probeEngine(reach(fake), { model: null, now: NOW });
    expect(seen).toMatchObject({ error: null, version: "9.9.9", models: ["policy"], token_ids: true, logprobs: true });
    expect(seen.exactness?.logprobs_mode).toBe("processed");
    expect(seen.routes.includes("/collective_rpc")).toBe(era !== "prime_rl");
    expect(seen.routes.includes("/init_broadcaster")).toBe(era === "prime_rl");
    expect(seen.weight_info).toBe(era === "c" ? "default" : null);
  });

  test("tries each route if their list is hidden, without changing anything", async () => {
    const fake = await start();
    const { routes } = await probeEngine(reach(fake), { model: null, now: NOW });
    fake.breakRoute("/openapi.json", { status: 404 }, 9);
    const asked = await probeEngine(reach(fake), { model: null, now: NOW });
    expect(asked.routes).toEqual(routes);
    expect(fake.requests.filter((sent) => sent.startsWith("POST") && !sent.includes("/chat/"))).toEqual([]);
  });

  test("reports what is wrong with an engine that answers 404", async () => {
    const fake = await start();
    fake.breakRoute("/v1/chat/completions", { status: 404 }, 9);
    expect(await probeEngine(reach(fake), { model: null, now: NOW })).toMatchObject({
      ...{ chat: false, error: "404 for POST /chat/completions" },
    });
  });
});

describe("a check", () => {
  test("distinguishes a restart, old weights and missing adapters from what was there", async () => {
    const fake = await start();
    const load = { mode: "lora_versioned", adapter: "policy@1", location: "/adapters/1" } as const;
    await loadWeights(reach(fake), load, IN_TIME);
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

  test("finds an engine down that is gone, hangs, refuses the key or has a dead backend", async () => {
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

  test("only lists the models of an engine whose control side is closed", async () => {
    const fake = await start();
    for (const route of ["/health", "/metrics", "/weight_info", "/is_paused"]) fake.breakRoute(route, { status: 404 });
    expect(await checkEngine(reach(fake))).toEqual({
      ...{ kind: "alive", models: ["policy"], started_at: null, weights: null, paused: null },
    });
  });
});
