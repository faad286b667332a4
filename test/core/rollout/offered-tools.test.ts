/** Environment code outside of hooks: it has the limits of hooks, and its errors end the rollout. */
import { dataset, MultiTurnEnv } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import type { ToolDefinition } from "../../../src/contract/messages.ts";
import { Harness, offeredTools } from "../../../src/core/rollout/harness.ts";
import { advance, type HookEffect, newRollout, type Rollout } from "../../../src/core/rollout/rollout.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");

function started(): Rollout {
  const prompt = [{ role: "user", content: "q" }] as const;
  const task = { question: "q" };
  const fixed = { id: "ro", task_key: "k", example_id: 0, task, prompt, answer: "", info: {} };
  return newRollout(fixed, 0);
}

const harnessOf = (environment: SayingEnv) =>
  new Harness(environment, { rolloutId: "ro", seed: 1, capabilities: { now: () => 7 } });

async function after(
  environment: SayingEnv,
  rollout: Rollout,
  kind: HookEffect["kind"],
  harness = harnessOf(environment),
) {
  return advance(rollout, await harness.perform({ kind }, rollout));
}

/** Returns the tools of `say`, and counts the calls. */
class SayingEnv extends MultiTurnEnv<{ question: string }> {
  asked = 0;
  say: () => readonly ToolDefinition[] = () => [];
  override toolDefinitionsOf(): readonly ToolDefinition[] {
    this.asked += 1;
    return this.say();
  }
}

const saying = () => new SayingEnv({ dataset: rows, maxTurns: 1, envResponse: () => "Go on.", rubric: {} });

test("tools are read right after the hook that left their state, and not again for the call", async () => {
  const environment = saying();
  const harness = harnessOf(environment);
  const ready = await after(environment, await after(environment, started(), "setup", harness), "reply", harness);
  expect(ready.phase).toBe("sample");
  expect(harness.offered).toEqual([]);
  expect(environment.asked).toBe(1);
  // Another process asks again.
  expect(offeredTools(environment, ready)).toEqual([]);
  expect(environment.asked).toBe(2);
});

test("tools that cannot be listed or sent fail the rollout before the call", async () => {
  const refuse = () => {
    throw new Error("no tools");
  };
  const unsendable = { toJSON: refuse };
  for (const say of [refuse, () => JSON.parse("7"), () => JSON.parse("null"), () => [unsendable]]) {
    const environment = saying();
    environment.say = say;
    const ready = await after(environment, await after(environment, started(), "setup"), "reply");
    expect(ready).toMatchObject({ phase: "close", failure: "environment", intent: null });
    expect(ready.error?.message).toMatch(/toolDefinitionsOf/);
  }
});

test("an error while closing outside of hooks does not prevent closing", async () => {
  const environment = saying();
  const ready = advance(await after(environment, started(), "setup"), { type: "timed_out" });
  Object.defineProperty(environment, "cleanupHandlers", {
    get: () => {
      throw new Error("no handlers");
    },
  });
  const done = await after(environment, ready, "close");
  expect(done).toMatchObject({ phase: "done", failure: "environment" });
});
