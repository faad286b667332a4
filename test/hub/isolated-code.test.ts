/** Environment code in isolates of its own, made by the Worker Loader. */
import { env } from "cloudflare:workers";
import { expect, inject, test } from "vitest";
import * as z from "zod";
import { loadEnvironment as calculator } from "../../environments/calculator/environment.ts";
import { loadEnvironment as guessNumber } from "../../environments/guess-number/environment.ts";
import type { JsonObject } from "../../src/contract/json.ts";
import type { EnvironmentCode, RolloutHost, TaskSource } from "../../src/core/protocol/environment-code.ts";
import { loadableOf } from "../../src/core/protocol/in-process.ts";
import { type ServedEnvironment, serveEnvironment } from "../../src/core/protocol/served.ts";
import type { TestModel } from "../../src/core/rollout/play.ts";
import { advance, newRollout } from "../../src/core/rollout/rollout.ts";
import { argumentsWork } from "../../src/core/rubrics/work.ts";
import { nullPolicy, randomPolicy } from "../../src/core/validation/policies.ts";
import { environments } from "../../src/hub/environments.ts";
import { isolatedEnvironment } from "../../src/hub/isolated-code.ts";
import { playByCode } from "../fixtures/played-code.ts";
import { openPlatform } from "../kernel/platform.ts";
import { pack, send } from "./packages.ts";

const SEEDS = [1, 2, 3, 4, 5];
const BUNDLED = { calculator, "guess-number": guessNumber };

function isolated(id: string, orgId = "org_isolated") {
  const bundle = inject("bundles")[id];
  if (bundle === undefined) throw new Error(`no bundle of ${id}`);
  return isolatedEnvironment(env, orgId, { digest: bundle.digest, text: async () => bundle.text });
}

const isolatedCode = async (id: string, args: JsonObject = {}) => (await isolated(id)).load(args);

const own = (index: number): TaskSource => ({ kind: "own", training: false, index, seed: index });

test.each(["calculator", "guess-number"] as const)(
  "%s plays and scores in an isolate of its own as it does in the platform's",
  async (id) => {
    const loader = BUNDLED[id];
    const here = await loadableOf(loader).load({});
    const loadable = await isolated(id);
    const there = await loadable.load({});
    expect([loadable.args, loadable.needs]).toEqual([loadableOf(loader).args, loader.needs]);
    expect(there.description).toEqual({ ...here.description });
    for (const seed of SEEDS) {
      for (const policy of [randomPolicy(seed), nullPolicy]) {
        const play = () => ({ source: own(seed), seed, model: policy() });
        const played = await playByCode(here, play());
        expect(await playByCode(there, play())).toEqual(played);
        expect(played.records).toMatchObject([{ unscored: null }]);
      }
    }
  },
);

test("arguments are checked in the isolate", async () => {
  const loadable = await isolated("guess-number");
  const fault = await loadable.checkArguments({ nothing: 1 }, argumentsWork());
  expect(fault).toEqual({ kind: "unknown", path: ["nothing"], message: null });
});

const HOST: RolloutHost = {
  now: () => 0,
  fetch: () => Promise.reject(new Error("this test allows no requests")),
  sql: { exec: () => [] },
  unrepeatable: () => undefined,
  timer: () => ({ over: new Promise(() => undefined), stop: () => undefined }),
};

/** What the code finds when it tries `what`. */
async function found(code: EnvironmentCode, what: string, more: Partial<RolloutHost> = {}) {
  const made = await code.task({ kind: "brought", training: false, index: 0, row: { question: what } });
  if ("fault" in made) throw new Error(made.fault.message);
  const rollout = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const opening = { rollout_id: "rollout", row: rollout, seed: 0, secrets: { KEY: "the key itself" } };
  const player = await code.play(opening, { ...HOST, ...more });
  const { event } = await player.perform({ kind: "setup" }, rollout);
  return event.type === "set_up" ? event.state["found"] : event;
}

test("the code has no network and no bindings of its own, and shares no memory with other organisations", async () => {
  const code = await isolatedCode("probing");
  expect(await found(code, "fetch")).toMatch(/not permitted to access the internet/);
  expect(await found(code, "bindings")).toBe("");
  const before = Number(await found(code, "shared"));
  expect(await found(code, "shared")).toBe(String(before + 1));
  const other = await (await isolated("probing", "org_other")).load({});
  expect(await found(other, "shared")).toBe("1");
});

test("it reaches outside by its host, whose errors it gets as they are, and secrets are removed from what it returns", async () => {
  const code = await isolatedCode("probing");
  const asked: unknown[] = [];
  const fetch: RolloutHost["fetch"] = async (url, options) => {
    asked.push([url, options]);
    return { status: 201, headers: [["X-Kind", "echo"]], text: String(options?.body) };
  };
  expect(await found(code, "can.fetch", { fetch })).toBe("201 echo [secret]");
  expect(asked).toEqual([["https://there.example/", { method: "POST", body: "the key itself" }]]);
  const refused = () => Promise.reject(Object.assign(new Error("not allowed"), { name: "EnvError" }));
  expect(await found(code, "refused", { fetch: refused })).toBe("EnvError: not allowed");
});

test("a hook that hangs ends when the host says that its time is over", async () => {
  const code = await isolatedCode("probing");
  const { promise: over, resolve } = Promise.withResolvers<{ message: string; whole: boolean }>();
  const begun: string[] = [];
  const timer: RolloutHost["timer"] = (stage, what) => {
    begun.push(`${stage} ${what}`);
    if (what === "setupState") resolve({ message: `${what} took too long`, whole: false });
    return { over: what === "setupState" ? over : new Promise(() => undefined), stop: () => undefined };
  };
  expect(await found(code, "hang", { timer })).toMatchObject({
    type: "failed",
    failure: "timeout",
    error: { error: "StageTimeoutError", message: "setupState took too long" },
  });
  expect(begun).toEqual(["setup the setup", "setup setupState"]);
});

test("a module that cannot be loaded is an error of the environment", async () => {
  const broken = { digest: "sha256:broken", text: async () => "throw new Error('broken from the start')" };
  await expect(isolatedEnvironment(env, "org_isolated", broken)).rejects.toThrow(
    expect.objectContaining({ name: "EnvError", message: expect.stringMatching(/broken from the start/) }),
  );
});

test("code that cannot be read is the platform's fault for all that wait for it, and it is read again", async () => {
  const { digest, text } = inject("bundles")["calculator"] ?? { digest: "", text: "" };
  let reads = 0;
  const bundle = {
    digest: `${digest}:unread`,
    text: async () => {
      reads += 1;
      if (reads > 2) return text;
      throw new Error(`the store is away, ${reads}`);
    },
  };
  const open = () => isolatedEnvironment(env, "org_isolated", bundle);
  for (const time of [1, 2]) {
    for (const one of await Promise.allSettled([open(), open()])) {
      expect(one).toMatchObject({ reason: { name: "Error", message: `the store is away, ${time}` } });
    }
  }
  expect((await open()).needs).toEqual([]);
});

test("code whose reader ended before it had it is the platform's fault, and is read again for another isolate", async () => {
  const served = serveEnvironment(calculator, (text) => text);
  const gone = async () => {
    // The runtime's words.
    throw new Error("The execution context which hosts this callback is no longer running.");
  };
  const names: string[] = [];
  const loader: unknown = {
    get: (name: string, load: () => Promise<unknown>) => {
      names.push(name);
      void load();
      return { getEntrypoint: () => (name.endsWith(":1") ? served : { ...served, outline: gone }) };
    },
  };
  const text = () => (names.length === 1 ? new Promise<string>(() => undefined) : Promise.resolve(""));
  const open = () =>
    isolatedEnvironment({ ...env, LOADER: loader as WorkerLoader }, "org", { digest: "sha256:unread", text });
  await expect(open()).rejects.toMatchObject({ name: "CodeUnreadError", retryable: true });
  expect((await open()).needs).toEqual([]);
  expect(names).toEqual(["org:sha256:unread", "org:sha256:unread:1"]);
});

test("a run whose code is not stored any more has no code, as if the version had been taken down", async () => {
  const api = await openPlatform();
  const id = `gone-${crypto.randomUUID().slice(0, 8)}/faulty`;
  const code = inject("bundles")["faulty"]?.text ?? "";
  const manifest = { rollcall: { args: { kind: "none" } } };
  const sent = await send(api, await pack({ name: id, version: "1.0.0", code, manifest }), "allow_failing=true");
  const { digest } = z.object({ digest: z.string() }).parse(await sent.json());
  const pin = { id, version: "1.0.0", digest };
  expect((await environments.pinned(env, pin, "org_one"))?.digest).toBe(digest);
  const { objects } = await env.STORE.list({ prefix: `org/${api.scope.orgId}/` });
  await env.STORE.delete(objects.map(({ key }) => key));
  expect(await environments.pinned(env, pin, "org_other")).toBeNull();
});

/** Code of an isolate whose answers the test determines. */
async function servedBy(served: ServedEnvironment): Promise<EnvironmentCode> {
  const loader: unknown = { get: () => ({ getEntrypoint: () => served }) };
  const bundle = { digest: "sha256:served", text: async () => "" };
  return (await isolatedEnvironment({ ...env, LOADER: loader as WorkerLoader }, "org_isolated", bundle)).load({});
}

test("code that does not check its own calls gets only what it declared", async () => {
  const served = serveEnvironment(calculator, (text) => text);
  const answers: unknown[] = [];
  const code = await servedBy({
    ...served,
    play: async (args, opening, host, ...effect) => {
      answers.push(await host.fetch("https://there.example/", {}));
      answers.push(await host.sql({ effect: "setup", call: 0 }, "select 1", []));
      return await served.play(args, opening, host, ...effect);
    },
  });
  const calls: string[] = [];
  const fetch: RolloutHost["fetch"] = async (url) => {
    calls.push(url);
    return { status: 200, headers: [], text: "" };
  };
  await playByCode(code, { source: own(0), model: () => "2", fetch });
  expect(answers).toMatchObject([
    { error: { error: "EnvError", message: expect.stringContaining("is used but not declared") } },
    { error: { error: "EnvError", message: expect.stringContaining("is used but not declared") } },
  ]);
  expect(calls).toEqual([]);
});

test("an event that only the platform has, and a failure of another kind, count as failures of the environment", async () => {
  const served = serveEnvironment(calculator, (text) => text);
  const error = { error: "ModelError", message: "no", error_chain_str: "no", error_chain_repr: "no", retryable: true };
  const events = [
    { type: "cancelled", reason: "user" },
    { type: "failed", failure: "provider", error },
  ] as const;
  for (const event of events) {
    const play: ServedEnvironment["play"] = async (...given) => {
      return { ...(await served.play(...given)), performed: JSON.stringify([{ event, tools: null }]) };
    };
    const { trajectory } = await playByCode(await servedBy({ ...served, play }), { source: own(0), model: () => "2" });
    expect(trajectory).toMatchObject({ cancelled: null, stop_condition: "has_error", turns: [] });
  }
});

test("a rollout of four turns makes seven calls across: for its task, for each turn and the end, and for its score", async () => {
  const calls: string[] = [];
  const served = serveEnvironment(calculator, (text) => text);
  const counted: ServedEnvironment = {
    ...served,
    task: (...given) => {
      calls.push("task");
      return served.task(...given);
    },
    tools: (...given) => {
      calls.push("tools");
      return served.tools(...given);
    },
    play: async (...given) => {
      calls.push("play");
      const begun = await served.play(...given);
      const perform: typeof begun.perform = (...effect) => {
        calls.push("perform");
        return begun.perform(...effect);
      };
      return { ...begun, perform };
    },
    score: (...given) => {
      calls.push("score");
      return served.score(...given);
    },
  };
  const code = await servedBy(counted);
  const call = { tool_calls: [{ name: "add", arguments: { a: 1, b: 1 } }] };
  const model: TestModel = ({ turn }) => (turn < 3 ? call : "2");
  const { trajectory } = await playByCode(code, { source: own(0), model });
  expect(trajectory.turns).toHaveLength(4);
  expect(calls).toEqual(["task", "play", "perform", "perform", "perform", "perform", "score"]);
});

test("a rollout that is cancelled does not get what its isolate performed ahead", async () => {
  const code = await isolatedCode("guess-number");
  const made = await code.task(own(1));
  if ("fault" in made) throw new Error(made.fault.message);
  const started = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const player = await code.play({ rollout_id: "rollout", row: started, seed: 0, secrets: {} }, HOST);
  const rollout = advance(started, (await player.perform({ kind: "setup" }, started)).event);
  const cancelled = advance(rollout, { type: "cancelled", reason: "user" });
  const { event } = await player.perform({ kind: "close" }, cancelled);
  expect(advance(cancelled, event)).toMatchObject({ phase: "done", cancelled: "user", turns: [], error: null });
});
