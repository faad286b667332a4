/** Attacks of environment code on the platform, one at a time; test/hub/hostile-runs.test.ts has those of whole runs. */
import { env } from "cloudflare:workers";
import { expect, inject, test } from "vitest";
import { loadEnvironment as calculator } from "../../environments/calculator/environment.ts";
import type { JsonObject } from "../../src/contract/json.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import type {
  EnvironmentCode,
  RolloutHost,
  ScoringHost,
  TaskSource,
} from "../../src/core/protocol/environment-code.ts";
import { loadableOf } from "../../src/core/protocol/in-process.ts";
import { type ServedEnvironment, type ServingRollout, serveEnvironment } from "../../src/core/protocol/served.ts";
import { newRollout } from "../../src/core/rollout/rollout.ts";
import { hostRollout } from "../../src/hub/host-calls.ts";
import { isolatedEnvironment } from "../../src/hub/isolated-code.ts";
import { sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { faultOf, MOST_FAULTS, NO_TRIES, withFailed } from "../../src/kernel/rollout/fault.ts";
import { playByCode } from "../fixtures/played-code.ts";
import { loadEnvironment as judged } from "./judged.ts";

const NEVER = new Promise<never>(() => undefined);
const HOST: RolloutHost = {
  now: () => 0,
  fetch: () => Promise.reject(Object.assign(new Error("127.0.0.1 is not public"), { name: "EnvError" })),
  sql: { exec: () => [] },
  unrepeatable: () => undefined,
  timer: () => ({ over: NEVER, stop: () => undefined }),
};
const own = (index: number): TaskSource => ({ kind: "own", training: false, index, seed: index });

async function bundled(id: string, orgId = "org_hostile", args: JsonObject = {}) {
  const bundle = inject("bundles")[id];
  if (bundle === undefined) throw new Error(`no bundle of ${id}`);
  return (await isolatedEnvironment(env, orgId, { digest: bundle.digest, text: async () => bundle.text })).load(args);
}

async function opened(code: EnvironmentCode, question: string, host: Partial<RolloutHost> = {}) {
  const made = await code.task({ kind: "brought", training: false, index: 0, row: { question } });
  if ("fault" in made) throw new Error(made.fault.message);
  const rollout = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const opening = { rollout_id: "rollout", row: rollout, seed: 0, secrets: { KEY: "the key itself" } };
  return { rollout, player: await code.play(opening, { ...HOST, ...host }) };
}

/** What the code finds when it tries `what`. */
async function found(code: EnvironmentCode, what: string, host: Partial<RolloutHost> = {}) {
  const { rollout, player } = await opened(code, what, host);
  const { event } = await player.perform({ kind: "setup" }, rollout);
  return event.type === "set_up" ? event.state["found"] : event;
}

/** Code whose isolate answers what the test determines. */
async function servedBy(served: ServedEnvironment, given: Partial<Env> = {}): Promise<EnvironmentCode> {
  const loader: unknown = { get: () => ({ getEntrypoint: () => served }) };
  const bundle = { digest: "sha256:served", text: async () => "" };
  const loadable = await isolatedEnvironment(
    { ...env, ...given, LOADER: loader as WorkerLoader },
    "org_hostile",
    bundle,
  );
  return await loadable.load({});
}

const honest = () => serveEnvironment(calculator, (text) => text);

test("the code finds no secret, variable, binding or module of the platform", async () => {
  const code = await bundled("probing");
  expect(await found(code, "variables")).toBe("[{},[]]");
  expect(await found(code, "bindings")).toBe("");
  // Its own entry point.
  expect(await found(code, "exports")).toBe("default");
  expect(await found(code, "undeclared secret")).toBe(
    'EnvError: secret:OTHER is used but not declared: add "secret:OTHER" to needs',
  );
  expect(String(await found(code, "modules")).match(/No such module/g)).toHaveLength(5);
});

test("the code reaches no network but by its host, which guards the address", async () => {
  const code = await bundled("probing");
  for (const way of ["fetch", "connect", "socket"]) {
    expect(await found(code, way), way).toMatch(/not permitted to access the internet/);
  }
  expect(await found(code, "undeclared host")).toBe("EnvError: 127.0.0.1 is not public");
});

test("the prototypes that code changes are those of its own isolate", async () => {
  expect(await found(await bundled("probing", "org_polluting"), "pollute")).toBe("true");
  expect(Reflect.get({}, "polluted")).toBe(undefined);
  expect(Reflect.get([], "polluted")).toBe(undefined);
  expect(await found(await bundled("probing", "org_clean"), "pollute")).toBe("true");
});

test("functions of the platform that code keeps are refused once their call has ended", async () => {
  const kept: ServingRollout[] = [];
  const calls: string[] = [];
  const code = await servedBy({
    ...honest(),
    play: async (args, opening, host, ...effect) => {
      kept.push(host);
      return await honest().play(args, opening, host, ...effect);
    },
  });
  const fetch: RolloutHost["fetch"] = async (url) => {
    calls.push(url);
    return { status: 200, headers: [], text: "" };
  };
  await playByCode(code, { source: own(0), model: () => "2", fetch });
  const [host] = kept;
  const error = { error: "EnvError", message: "the call that this function came with has ended" };
  expect(await host?.fetch("https://there.example/", {})).toEqual({ error });
  expect(await host?.sql({ effect: "setup:0", call: 0 }, "select 1", [])).toEqual({ error });
  expect(await host?.late(1, { stage: "tool", what: "later" })).toBe(null);
  await expect(host?.unrepeatable("send")).rejects.toThrow(error.message);
  expect(calls).toEqual([]);
});

/** Calls `attack` with the functions of the platform, during the setup. */
async function attackedHost(attack: (host: ServingRollout) => Promise<unknown>, host: Partial<RolloutHost> = {}) {
  const needs = ["fetch", "sql"] as const;
  const description = JSON.parse(await honest().describe({}));
  const code = await servedBy({
    ...honest(),
    describe: async () => JSON.stringify({ ...description, needs }),
    play: async (args, opening, functions, ...effect) => {
      await attack(functions);
      return await honest().play(args, opening, functions, ...effect);
    },
  });
  const made = await code.task(own(0));
  if ("fault" in made) throw new Error(made.fault.message);
  const rollout = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const player = await code.play({ rollout_id: "rollout", row: rollout, seed: 0, secrets: {} }, { ...HOST, ...host });
  return (await player.perform({ kind: "setup" }, rollout)).event;
}

/** Tells what it reaches of the object with the platform's functions, as code without the library would. */
const LOOKING = `
  import { WorkerEntrypoint } from "cloudflare:workers";
  export default class extends WorkerEntrypoint {
    async look(host, names) {
      const found = [];
      for (const name of names) {
        try {
          found.push(typeof (await host[name]()));
        } catch (thrown) {
          found.push(thrown.message);
        }
      }
      return found;
    }
  }`;

test("of the object with the platform's functions, code reaches nothing but these functions", async () => {
  const { serving } = hostRollout(HOST, ["fetch", "sql"], { turns: [] }, "setup");
  const worker = env.LOADER.get("org_looking:looking", () => ({
    compatibilityDate: "2026-09-01",
    mainModule: "looking.js",
    modules: { "looking.js": LOOKING },
    env: {},
    globalOutbound: null,
  }));
  const code = worker.getEntrypoint() as unknown as {
    look(host: ServingRollout, names: readonly string[]): Promise<readonly string[]>;
  };
  const hidden = ["#call", "#host", "call", "host", "needs", "prototype", "answered", "made", "end"];
  const unknown = (name: string) => `The RPC receiver does not implement the method "${name}".`;
  expect(await code.look(serving, ["fetch", ...hidden])).toEqual(["object", ...hidden.map(unknown)]);
});

test("calls of the platform with wrong arguments are refused by name", async () => {
  const answers: unknown[] = [];
  const event = await attackedHost(async (host) => {
    answers.push(await host.fetch(1 as never, {}));
    answers.push(await host.fetch("https://there.example/", { headers: 1 } as never));
    answers.push(await host.sql({ effect: "setup:7", call: 0 }, "select 1", []));
    answers.push(await host.sql({ effect: "setup:0", call: -1 }, "select 1", []));
    answers.push(await host.sql({ effect: "setup:0", call: 0 }, "select 1", [{}] as never));
  });
  expect(event.type).toBe("set_up");
  expect(answers).toHaveLength(5);
  for (const answer of answers) expect(answer).toMatchObject({ error: { error: "EnvError" } });
});

test("a thousand calls at once are the most, and ten thousand in one call end the rollout", async () => {
  const { promise: gate, resolve } = Promise.withResolvers<void>();
  const answers: unknown[] = [];
  const host: Partial<RolloutHost> = {
    sql: {
      exec: async () => {
        await gate;
        return [];
      },
    },
  };
  const event = await attackedHost(async (functions) => {
    const query = (call: number) => functions.sql({ effect: "setup:0", call }, "select 1", []);
    const open = Array.from({ length: LIMITS.isolateCallsAtOnce }, (_, call) => query(call));
    answers.push(await query(1));
    resolve();
    expect(await Promise.all(open)).toHaveLength(LIMITS.isolateCallsAtOnce);
  }, host);
  expect(event.type).toBe("set_up");
  expect(answers).toEqual([{ error: { error: "EnvError", message: "more than 1000 calls at once" } }]);
  const stepping = await attackedHost(async (functions) => {
    const step = (number: number) => functions.late(number, { stage: "tool", what: "nothing" });
    await Promise.all(Array.from({ length: LIMITS.isolateCallsAtOnce + 1 }, (_, at) => step(at)));
  });
  expect(stepping).toMatchObject({ type: "failed", error: { message: "more than 1000 steps at once" } });
  const ended = await attackedHost(async (functions) => {
    await Promise.all(Array.from({ length: LIMITS.isolateCalls + 1 }, (_, at) => functions.ended(at)));
  });
  expect(ended).toMatchObject({
    type: "failed",
    failure: "environment",
    error: { message: "it made more than 10000 calls of the platform in one call" },
  });
});

test("an isolate that never answers ends its rollout when the time of its stage is over", async () => {
  const timer: RolloutHost["timer"] = (stage, what) => {
    return {
      over: Promise.resolve({ message: `${stage}: ${what} took too long`, whole: false }),
      stop: () => undefined,
    };
  };
  const code = await servedBy({ ...honest(), play: () => NEVER, score: () => NEVER });
  const made = await code.task(own(0));
  if ("fault" in made) throw new Error(made.fault.message);
  const rollout = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const player = await code.play({ rollout_id: "rollout", row: rollout, seed: 0, secrets: {} }, { ...HOST, timer });
  const played = player.perform({ kind: "setup" }, rollout);
  const { trajectory } = await playByCode(await servedBy(honest()), { source: own(0), model: () => "2" });
  const scoring: ScoringHost = { ...HOST, hash: (text) => text, timer: (what) => timer("turn", what) };
  const scored = code.score({ members: [trajectory], secrets: {}, judges: null }, scoring);
  expect((await played).event).toMatchObject({
    type: "failed",
    failure: "timeout",
    error: { error: "StageTimeoutError", message: "setup: the setup took too long" },
  });
  const error = "StageTimeoutError: turn: scoring took too long";
  expect((await scored).records).toMatchObject([{ reward: null, unscored: "scorer", scoring_errors: [{ error }] }]);
});

test("an error of the code is its own whatever it says; only a fault of the platform is thrown", async () => {
  const { trajectory } = await playByCode(await servedBy(honest()), { source: own(0), model: () => "2" });
  const scoring: ScoringHost = { ...HOST, hash: (text) => text, timer: () => ({ over: NEVER, stop: () => undefined }) };
  const scoredWith = async (thrown: Error) => {
    const code = await servedBy({ ...honest(), score: () => Promise.reject(thrown) });
    return await code.score({ members: [trajectory], secrets: {}, judges: null }, scoring);
  };
  // The runtime sets `remote` for errors that the code of another isolate threw.
  const lost = new Error("Network connection lost.");
  const imitated = Object.assign(new Error("Network connection lost."), { remote: true, retryable: true });
  const exceeded = new Error("Worker exceeded CPU time limit.");
  for (const thrown of [imitated, exceeded]) {
    const error = `EnvError: its isolate failed: ${thrown.message}`;
    expect((await scoredWith(thrown)).records).toMatchObject([
      { reward: null, unscored: "scorer", scoring_errors: [{ error }] },
    ]);
  }
  await expect(scoredWith(lost)).rejects.toMatchObject({ name: "IsolateLostError", cause: lost });
});

test("a rollout whose isolate is lost again and again ends", async () => {
  const code = await servedBy({ ...honest(), play: () => Promise.reject(new Error("Network connection lost.")) });
  const made = await code.task(own(0));
  if ("fault" in made) throw new Error(made.fault.message);
  const rollout = newRollout({ ...made.task, id: "rollout", task_key: "task" }, 0);
  const player = await code.play({ rollout_id: "rollout", row: rollout, seed: 0, secrets: {} }, HOST);
  let tries = NO_TRIES;
  for (let tried = 1; tried <= MOST_FAULTS; tried += 1) {
    const thrown: unknown = await player.perform({ kind: "setup" }, rollout).catch((lost: unknown) => lost);
    tries = withFailed(tries, thrown);
    const kind = tried < MOST_FAULTS ? "waits" : "platform";
    expect(faultOf(thrown, tries)).toMatchObject({ kind });
  }
});

test("a question to a judge must have the hash of its content, and an honest isolate's has it", async () => {
  const here = await loadableOf(judged).load({});
  const { trajectory } = await playByCode(here, { source: own(0), model: () => "2" });
  const host: ScoringHost = { ...HOST, hash: sha256Hex, timer: () => ({ over: NEVER, stop: () => undefined }) };
  const group = { members: [trajectory], secrets: {}, judges: { named: ["default"], known: {} } };
  const asked = await here.score(group, host);
  expect(asked.pending).toHaveLength(5);
  expect(await (await bundled("judged")).score(group, host)).toEqual({ ...asked, records: expect.anything() });
  const served = serveEnvironment(judged, sha256Hex);
  const score: ServedEnvironment["score"] = async (...given) => {
    const { pending, ...scored } = JSON.parse(await served.score(...given));
    // The judgement of this question would be stored as that of another one.
    const [first, second] = pending;
    return JSON.stringify({ ...scored, pending: [{ ...first, key: second.key }] });
  };
  const { pending, records } = await (await servedBy({ ...served, score })).score(group, host);
  expect(pending).toEqual([]);
  const error = "EnvError: the reply of its isolate: pending[0].key: is not the hash of its question";
  expect(records).toMatchObject([{ reward: null, unscored: "scorer", scoring_errors: [{ error }] }]);
});

test("a rollout that failed is not scored, whatever its isolate answers", async () => {
  const { trajectory } = await playByCode(await servedBy(honest()), { source: own(0), model: () => "2" });
  const error = { error: "EnvError", message: "no", error_chain_str: "no", error_chain_repr: "no", retryable: false };
  const { rollout_id } = trajectory;
  const record = { rollout_id, reward: 1, scores: [], scoring_errors: [], unscored: null };
  const score = async () => JSON.stringify({ records: [record], pending: [], steps: 0 });
  const code = await servedBy({ ...honest(), score });
  const host: ScoringHost = { ...HOST, hash: sha256Hex, timer: () => ({ over: NEVER, stop: () => undefined }) };
  const { records } = await code.score({ members: [{ ...trajectory, error }], secrets: {}, judges: null }, host);
  expect(records).toMatchObject([{ rollout_id, reward: null, unscored: null }]);
});

test("a task that is a lie is an error of its row", async () => {
  const code = await bundled("hostile");
  const task = (question: string) => code.task({ kind: "brought", training: false, index: 3, row: { question } });
  expect(await task("a task of 100 MB")).toMatchObject({
    fault: { index: 3, message: expect.stringContaining("32MiB") },
  });
  const message = expect.stringContaining("the reply of its isolate: task");
  expect(await task("a task that is none")).toMatchObject({ fault: { index: 3, message } });
});

test("a task with a part that is larger than a row may be is an error of its row", async () => {
  const part = { x: "x".repeat(LIMITS.rowBytes) };
  const small = { example_id: 0, task: {}, prompt: [], answer: "", info: {} };
  for (const [name, task] of Object.entries({ info: { ...small, info: part }, task: { ...small, task: part } })) {
    const reply = JSON.stringify({ row: { question: "?" }, member: null, task });
    const code = await servedBy({ ...honest(), task: async () => reply });
    const message = expect.stringContaining(`${name}: is more than ${LIMITS.rowBytes} bytes`);
    expect(await code.task(own(3))).toMatchObject({ fault: { index: 3, message } });
  }
});

test("a description that lies is refused by name", async () => {
  const described = JSON.parse(await honest().describe({}));
  const refused = async (changes: object) => {
    const describe = async () => JSON.stringify({ ...described, ...changes });
    return await servedBy({ ...honest(), describe }).then(
      () => "it was taken",
      (thrown: unknown) => String(thrown),
    );
  };
  const [player] = described.players;
  expect(await refused({ protocol: 2 })).toBe("EnvError: its code speaks protocol 2, and this deployment speaks 1");
  const reply = "EnvError: the reply of its isolate:";
  expect(await refused({ needs: ["everything"] })).toBe(`${reply} needs[0]: is not a need`);
  expect(await refused({ players: [] })).toBe(`${reply} players: has no player`);
  expect(await refused({ players: Array(65).fill(player) })).toBe(`${reply} players: is not a list of at most 64`);
  expect(await refused({ scores: "all" })).toBe(`${reply} scores: is not a list of at most 10000`);
  expect(await refused({ judges: [`x${"y".repeat(300_000)}`] })).toMatch(/has \d+ characters; the maximum is 262144/);
  expect(await refused({ judgements: { default: "yes" } })).toContain(`${reply} judgements.default: is not a list`);
  expect(await refused({ maxReward: "1" })).toContain(`${reply} maxReward`);
  expect(await refused({ dataset: { ...described.dataset, length: -1 } })).toContain(`${reply} dataset.length`);
  const code = await servedBy({ ...honest(), describe: async () => JSON.stringify({ ...described, tearsDown: true }) });
  expect(code.description.tearsDown).toBe(false);
});

test("the limits of an isolate are given to its loader, and it has no network, bindings or modules of Node", async () => {
  const given: WorkerLoaderWorkerCode[] = [];
  const loader = {
    get: (name: string | null, make: () => WorkerLoaderWorkerCode | Promise<WorkerLoaderWorkerCode>) =>
      env.LOADER.get(`${name} with limits`, async () => {
        const code = await make();
        given.push(code);
        return code;
      }),
  };
  const { text } = inject("bundles")["probing"] ?? { text: "" };
  const bundle = { digest: "sha256:limited", text: async () => text };
  await isolatedEnvironment({ ...env, LOADER: loader as WorkerLoader }, "org_hostile", bundle);
  expect(given).toEqual([
    {
      compatibilityDate: "2026-09-01",
      compatibilityFlags: ["no_nodejs_compat"],
      mainModule: "environment.js",
      modules: { "environment.js": text },
      env: {},
      globalOutbound: null,
      limits: { cpuMs: 10_000, subRequests: 1000 },
    },
  ]);
});
