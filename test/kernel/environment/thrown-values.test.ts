/** Environment code that throws or returns unreadable values: its own rollout ends, and nothing waits forever. */
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, MultiTurnEnv, type ToolDefinition } from "../../../src/core/entry.ts";
import { MOST_FAULTS } from "../../../src/kernel/rollout/fault.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { WAIT } from "../../hang-limits.ts";
import { expectLaw, openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = unreadable;
  const digest = "sha256:unreadable";
  registerOnce({ id: "unreadable", version: "1.0.0", digest, args, needs, load });
});
afterEach(() => {
  vi.restoreAllMocks();
});

const Task = z.object({ question: z.string(), hook: z.string() });
type Task = z.infer<typeof Task>;

const refuse = (): never => {
  throw new Error("a getter");
};

/** No part of it can be read: each getter throws, and so does `instanceof`. */
function unreadableError(): Error {
  const getters = { message: { get: refuse }, name: { get: refuse }, cause: { get: refuse } };
  const error = Object.defineProperties(new Error("a"), getters);
  return new Proxy(error, { getPrototypeOf: refuse });
}

function breaks(hook: string, task: Task): void {
  if (task.hook === hook) throw unreadableError();
}

/** How often a prompt was made. The second time is in the rollout's object. */
const made = new Map<string, number>();

class UnreadableEnv extends MultiTurnEnv<Task, { hook: string }> {
  override toolDefinitionsOf(state: { readonly hook?: unknown }): readonly ToolDefinition[] {
    if (state.hook === "tools") throw unreadableError();
    if (state.hook === "tools gone") throw new Error("no tools any more");
    if (state.hook === "odd tools") return JSON.parse('{"tools": 7}');
    return [];
  }
}

const unreadable = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new UnreadableEnv({
      dataset: dataset(Task, "uploaded"),
      maxTurns: 2,
      prompt: ({ question, hook }) => {
        const times = (made.get(question) ?? 0) + 1;
        made.set(question, times);
        if (hook === "late prompt" && times > 1) throw unreadableError();
        return [{ role: "user", content: question }];
      },
      setupState: ({ task }) => {
        breaks("setupState", task);
        return { hook: task.hook === "tools gone" ? "" : task.hook };
      },
      openLive: ({ task }) => {
        breaks("openLive", task);
        return undefined;
      },
      closeLive: ({ task }) => breaks("closeLive", task),
      stops: {
        never: ({ task }) => {
          breaks("stop", task);
          return false;
        },
      },
      envResponse: (_messages, { task }) => {
        breaks("envResponse", task);
        if (task.hook === "reply") return new Proxy([], { get: refuse });
        return "Go on.";
      },
      postRollout: (state) => {
        breaks("postRollout", state.task);
        state.hook = state.task.hook;
      },
      cleanup: { sweep: ({ task }) => breaks("cleanup", task) },
      rubric: {
        rewards: {
          one: ({ state, task }) => {
            breaks("reward", task);
            if (task.hook === "credits") Object.assign(state, { trajectory: null });
            return 1;
          },
        },
      },
    }),
});

const FAILS = [
  "setupState",
  "openLive",
  "stop",
  "envResponse",
  "reply",
  "postRollout",
  "tools",
  "odd tools",
  "late prompt",
];
const NOTED = ["closeLive", "cleanup", "tools gone"];
const UNSCORED = ["reward", "credits"];

test("whatever environment code throws or returns, only its own rollout ends, and the others are scored", async () => {
  const hooks = [...FAILS, ...NOTED, ...UNSCORED, "none"];
  const unique = crypto.randomUUID();
  const rows = hooks.map((hook) => ({ question: `${hook} ${unique}`, hook }));
  const model = script(["Yes.", "Yes."]);
  const asked = { environment: "unreadable", dataset: rows, min_scored: 0, model };
  const run = await platform.finish(asked);
  expectLaw(run.counts);
  const results = await platform.results(run.id);
  const ends = Object.fromEntries(
    results.map(({ example_id, outcome, reason }) => [hooks[example_id], `${outcome} ${reason}`]),
  );
  expect(ends).toEqual({
    ...Object.fromEntries(FAILS.map((hook) => [hook, "failed environment"])),
    ...Object.fromEntries(NOTED.map((hook) => [hook, "scored null"])),
    ...Object.fromEntries(UNSCORED.map((hook) => [hook, "unscored scorer"])),
    none: "scored null",
  });
  for (const hook of NOTED) {
    const at = results.find(({ example_id }) => hooks[example_id] === hook);
    const { cleanup_errors } = await platform.rollout(at?.rollout_id ?? "");
    expect(cleanup_errors.length, hook).toBe(1);
  }
});

/** Each run of these tests has one rollout, which fails when it writes its result, until `heal`. */
async function failing(thrown: Error) {
  const model = script(RIGHT);
  let count = 0;
  const { save } = RolloutStore.prototype;
  const spy = vi.spyOn(RolloutStore.prototype, "save").mockImplementation(function (this: RolloutStore, rollout) {
    if (this.spec().model !== model) return save.call(this, rollout);
    count += 1;
    throw thrown;
  });
  const { id } = await platform.start({ environment: "gsm8k", dataset: questions(1), model, min_scored: 0 });
  await vi.waitUntil(() => count > 0, WAIT);
  return { id, tries: () => count, heal: () => spy.mockRestore() };
}

/** Number of tries so far; a minute passes for each. */
let minutes = 0;

/** One more try, by an object without memory of the previous one. */
async function tryOnce(id: string): Promise<void> {
  minutes += 1;
  await platform.inRollout(rolloutAt(id), async (rollout, { storage }) => {
    // As if the time of the alarm had come.
    rollout.now = () => Date.now() + minutes * 60_000;
    await storage.deleteAlarm();
    await rollout.alarm();
  });
  await evictDurableObject(await platform.rolloutStub(rolloutAt(id)));
}

async function standing(id: string): Promise<string | undefined> {
  return (await platform.inRollout(rolloutAt(id), (rollout) => rollout.ask()))?.state;
}

test("a fault of the platform's own code is retried a limited number of times; then its rollout fails as platform", async () => {
  const { id, tries, heal } = await failing(new TypeError("no such thing"));
  while ((await standing(id)) !== "answered") await tryOnce(id);
  expect(tries()).toBe(MOST_FAULTS);
  heal();
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ planned: 1, failed: { platform: 1 } });
  const { error } = await platform.rollout(rolloutAt(id));
  expect(error?.message).toBe(`the platform failed ${MOST_FAULTS} times: no such thing`);
});

test("a store that is unavailable is retried with growing waits, even after evictions, and ends nothing", async () => {
  const { id, tries, heal } = await failing(new Error("the store is away"));
  while (tries() < MOST_FAULTS + 5) await tryOnce(id);
  expect(await standing(id)).toBe("running");
  const alarm = await platform.inRollout(rolloutAt(id), (_, { storage }) => storage.getAlarm());
  expect((alarm ?? 0) - (Date.now() + minutes * 60_000)).toBeGreaterThan(15_000);
  heal();
  while ((await standing(id)) !== "answered") await tryOnce(id);
  expect(await platform.ended(id)).toMatchObject({ counts: { scored: 1 } });
});
