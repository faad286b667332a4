import { dataset, InfraError, MultiTurnEnv, OverlongPromptError, StatefulToolEnv } from "rollcall";
import { type RolloutOptions, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { AnyEnvironment, PlayedEnvironment } from "../../../src/core/environments/any-environment.ts";
import { gateCapabilities } from "../../../src/core/environments/capabilities.ts";
import type { Sql } from "../../../src/core/environments/contract.ts";
import { Harness } from "../../../src/core/rollout/harness.ts";
import { advance, type HookEffect, newRollout, type Rollout } from "../../../src/core/rollout/rollout.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const task = { question: "q" };
const sql: Sql = { exec: async () => [] };

function run(environment: AnyEnvironment, replies: string[], options: Partial<RolloutOptions> = {}) {
  return runRollout(environment, { task, model: scripted(replies), ...options });
}

function started(): Rollout {
  const prompt = [{ role: "user", content: "q" }] as const;
  const fixed = { id: "ro", task_key: "k", example_id: 0, task, prompt, answer: "", info: {} };
  return newRollout(fixed, 0);
}

function harnessOf(environment: PlayedEnvironment, now = () => 7) {
  return new Harness(environment, { rolloutId: "ro", seed: 1, capabilities: { now } });
}

async function after(environment: PlayedEnvironment, rollout: Rollout, kind: HookEffect["kind"]) {
  return advance(rollout, await harnessOf(environment).perform({ kind }, rollout));
}

test("R-loop-1: an exception in setupState fails the rollout without a model call, and cleanup still runs", async () => {
  const cleaned: string[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: () => {
      throw new RangeError("no seats");
    },
    cleanup: { sweep: () => void cleaned.push("sweep") },
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await run(environment, []);
  expect(report).toMatchObject({
    stop_condition: "has_error",
    turns: 0,
    completion: [],
    reward: null,
  });
  expect(report.error).toMatchObject({
    error: "EnvError",
    message: "setupState: no seats",
    error_chain_str: "EnvError -> RangeError",
  });
  expect(cleaned).toEqual(["sweep"]);
});

test("R-loop-13: an exception in a stop condition fails the rollout and names the condition", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    stops: {
      broken: () => {
        throw new Error("oops");
      },
    },
    rubric: {},
  });
  const report = await run(environment, []);
  expect(report.stop_condition).toBe("has_error");
  expect(report.error?.message).toBe("stop condition broken: oops");
});

test("a library error keeps its class and whether it is retryable", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => {
      throw new InfraError("sandbox gone");
    },
    rubric: {},
  });
  const report = await run(environment, ["hello"]);
  expect(report.error).toMatchObject({ error: "InfraError", retryable: true });
  expect(report.turns).toBe(1);
});

test("a prompt that the environment finds too long truncates the rollout, which is scored", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => {
      throw new OverlongPromptError("beyond the window");
    },
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await run(environment, ["hello"]);
  expect(report).toMatchObject({
    stop_condition: "prompt_too_long",
    is_truncated: true,
    error: null,
    reward: 1,
  });
});

test("R-loop-10: every cleanup handler runs, in order of priority, and each failure is kept", async () => {
  const order: string[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 1,
    postRollout: () => void order.push("postRollout"),
    closeLive: () => void order.push("closeLive"),
    cleanup: {
      b: () => {
        order.push("b");
        throw new Error("b failed");
      },
      a: () => void order.push("a"),
      first: { priority: 1, run: () => void order.push("first") },
    },
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await run(environment, ["hello"]);
  expect(order).toEqual(["postRollout", "first", "a", "b", "closeLive"]);
  expect(report.cleanup_errors.map((error) => error.message)).toEqual(["cleanup b: b failed"]);
  expect(report).toMatchObject({ reward: 1, error: null, stop_condition: "max_turns_reached" });
});

test("a failing postRollout fails the rollout, since scoring would miss the fields it should have written", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 1,
    postRollout: () => {
      throw new Error("no result");
    },
    rubric: { rewards: { one: () => 1 } },
  });
  const report = await run(environment, ["hello"]);
  expect(report).toMatchObject({ reward: null, stop_condition: "has_error" });
  expect(report.error?.message).toBe("postRollout: no result");
});

test("postRollout runs for a failed rollout too, and the first error is the one kept", async () => {
  let ran = false;
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => {
      throw new Error("first");
    },
    postRollout: () => {
      ran = true;
      throw new Error("second");
    },
    rubric: {},
  });
  const report = await run(environment, ["hello"]);
  expect(ran).toBe(true);
  expect(report.error?.message).toBe("envResponse: first");
});

test("a handle in the state is an error with its name and where handles belong", async () => {
  const handle = { db: { exec: () => [] } };
  const environment = new MultiTurnEnv({
    dataset: rows,
    // A value that the types forbid can still arrive at run time, if it is typed too loosely.
    setupState: () => handle as object,
    rubric: {},
  });
  const report = await run(environment, []);
  expect(report.error?.error).toBe("EnvError");
  expect(report.error?.message).toContain("state.db cannot be stored; return it from openLive");
});

test("a reserved name returned by setupState is an error with the name", async () => {
  const fields: object = { turn: 3 };
  const report = await run(new MultiTurnEnv({ dataset: rows, setupState: () => fields, rubric: {} }), []);
  expect(report.error?.message).toContain("state.turn is a field of the rollout");
});

test("a state over the limit is an error with its size in bytes", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: () => ({ log: "é".repeat(LIMITS.stateBytes / 2) }),
    rubric: {},
  });
  const report = await run(environment, []);
  expect(report.error?.message).toContain(`the state is ${LIMITS.stateBytes + '{"log":""}'.length} bytes`);
});

test("a state just within the limit is stored", async () => {
  const log = "x".repeat(LIMITS.stateBytes - '{"log":""}'.length);
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 1,
    setupState: () => ({ log }),
    rubric: {},
  });
  expect((await run(environment, ["hello"])).state).toEqual({ log });
});

test("a hook cannot overwrite library fields, and references it keeps cannot change what was stored", async () => {
  const kept: { list: number[] }[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: () => ({ list: [1] }),
    envResponse: (_messages, state) => {
      for (const earlier of kept) earlier.list.push(99);
      kept.push(state);
      return "go on";
    },
    stops: { three: (state) => state.turn === 3 },
    rubric: {},
  });
  expect((await run(environment, ["a", "b", "c"])).state).toEqual({ list: [1] });
  const vandal = new MultiTurnEnv({
    dataset: rows,
    envResponse: (_messages, state) => {
      Object.assign(state, { prompt: [] });
      return "";
    },
    rubric: {},
  });
  expect((await run(vandal, ["a"])).error?.error_chain_str).toBe("EnvError -> TypeError");
});

test("handles are opened once, before the first hook that may use them, and closed at the end", async () => {
  const log: string[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: () => ({ n: 0 }),
    openLive: (state) => {
      log.push(`open ${state.n}`);
      return { add: (n: number) => n + 1 };
    },
    closeLive: (state) => void log.push(`close ${state.live.add(state.n)}`),
    envResponse: (_messages, state) => {
      state.n = state.live.add(state.n);
      return "go on";
    },
    maxTurns: 3,
    rubric: {},
  });
  const report = await run(environment, ["a", "b", "c"]);
  expect(log).toEqual(["open 0", "close 3"]);
  expect(report.state).toEqual({ n: 2 });
});

test("a restart after every step reopens the handles and changes nothing else", async () => {
  let opened = 0;
  const environment = new MultiTurnEnv({
    dataset: rows,
    setupState: (_state, { random }) => ({ draws: [random()] }),
    openLive: (_state, { random }) => {
      opened += 1;
      random();
      return { random };
    },
    envResponse: (_messages, state) => {
      state.draws.push(state.live.random());
      return `draw ${state.draws.length}`;
    },
    maxTurns: 4,
    rubric: { rewards: { sum: ({ state }) => state.draws.reduce((a, b) => a + b, 0) } },
  });
  const replies = ["a", "b", "c", "d"];
  const straight = await run(environment, replies);
  expect(opened).toBe(1);
  const restarted = await run(environment, replies, { restartAfterEachTurn: true });
  expect(opened).toBeGreaterThan(4);
  expect(restarted).toEqual(straight);
  expect(new Set((straight.state["draws"] as number[]) ?? []).size).toBe(4);
});

test("handles that cannot be opened fail the rollout, and cleanup runs without them", async () => {
  const seen: unknown[] = [];
  const environment = new MultiTurnEnv({
    dataset: rows,
    openLive: (): { port: number } => {
      throw new Error("refused");
    },
    cleanup: { look: (state) => void seen.push(state.live) },
    rubric: {},
  });
  const report = await run(environment, []);
  expect(report.error?.message).toBe("openLive: refused");
  expect(seen).toEqual([undefined]);
});

test("dispose closes open handles once, and returns what failed", async () => {
  let closed = 0;
  const environment = new MultiTurnEnv({
    dataset: rows,
    openLive: () => ({ a: 1 }),
    closeLive: () => {
      closed += 1;
      throw new Error("stuck");
    },
    rubric: {},
  });
  const rollout = await after(environment, started(), "setup");
  const harness = harnessOf(environment);
  expect(await harness.dispose()).toBeNull();
  await harness.perform({ kind: "reply" }, rollout);
  expect((await harness.dispose())?.message).toBe("closeLive: stuck");
  expect(await harness.dispose()).toBeNull();
  expect(closed).toBe(1);
});

test("the first reply is the task's whole prompt, and ends have the clock's time", async () => {
  const environment = new MultiTurnEnv({ dataset: rows, rubric: {} });
  const rollout = await after(environment, started(), "setup");
  expect(await harnessOf(environment).perform({ kind: "reply" }, rollout)).toEqual({
    type: "replied",
    prompt: [{ role: "user", content: "q" }],
    state: {},
    final_env_response: null,
  });
  expect(await harnessOf(environment).perform({ kind: "close" }, rollout)).toMatchObject({ at: 7 });
});

test("a reply that is not a message fails the rollout and is not sent to the model", async () => {
  const odd: { role: "user"; content: string }[] = JSON.parse('[{"role":"robot","content":"x"}]');
  const environment = new MultiTurnEnv({ dataset: rows, envResponse: () => odd, rubric: {} });
  const report = await run(environment, ["hello"]);
  expect(report).toMatchObject({ stop_condition: "has_error", turns: 1 });
});

test("a final reply without a matching stop condition fails the rollout, which would never end otherwise", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: (_messages, state) => {
      state.final_env_response = "bye";
      return [];
    },
    stops: { has_final_env_response: null },
    rubric: {},
  });
  const report = await run(environment, ["hello"]);
  expect(report.error?.message).toContain("no stop condition ends the rollout");
});

test("a capability is available only if it is declared and offered", () => {
  const basics = { random: () => 0.5, now: () => 1 };
  expect(gateCapabilities(["sql"], { ...basics, sql }).sql).toBe(sql);
  expect(() => gateCapabilities([], { ...basics, sql }).sql).toThrow(/not declared: add "sql"/);
  expect(() => gateCapabilities(["sql"], basics).sql).toThrow(/declared but not available/);
  expect(() => gateCapabilities(["sql"], basics).fetch).toThrow(/fetch is used but not declared/);
  const keyed = gateCapabilities(["secret:KEY"], { ...basics, secret: (name) => `${name}!` });
  expect(keyed.secret("KEY")).toBe("KEY!");
  expect(() => keyed.secret("OTHER")).toThrow(/secret:OTHER is used but not declared/);
  expect([keyed.random(), keyed.now()]).toEqual([0.5, 1]);
});

test("an environment that uses an undeclared capability fails with the line to add", async () => {
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [],
    setupState: async (_state, can) => {
      await can.sql.exec("select 1");
      return {};
    },
    updateToolArgs: (_name, args) => args,
    rubric: {},
  });
  const report = await run(environment, []);
  expect(report.error?.message).toBe('sql is used but not declared: add "sql" to needs');
});

test("two rollouts draw different numbers, the same rollout always draws the same", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 1,
    setupState: (_state, { random }) => ({ x: random() }),
    rubric: {},
  });
  const [a, b, c] = await Promise.all([0, 0, 1].map((seed) => run(environment, ["hi"], { seed })));
  expect(a?.state).toEqual(b?.state);
  expect(a?.state).not.toEqual(c?.state);
});
