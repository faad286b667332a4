/** GRPO on rollouts that an agent plays through their addresses, with the bundled policy and the reference trainer. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadEnvironment } from "../../../environments/calculator/environment.ts";
import { ToolEnv } from "../../../src/core/entry.ts";
import { makeThrowAwayDirectory } from "../../../src/local/state-directory.ts";
import type { LeasedRollout } from "../../../src/sdk/client.ts";
import { deathOf, endGroup, type Served, serve } from "../served-platform.ts";
import { testPort } from "../test-port.ts";
import { ReferenceTrainer } from "./reference-trainer.ts";
import { calculator, clientOf, createTraining, evaluate, HELD_OUT, SEED, UNTRAINED } from "./training-runs.ts";

const NAME = "calculating";
const MOST_TURNS = 4;
const directory = makeThrowAwayDirectory();
let served: Served;

beforeAll(async () => {
  served = await serve(directory, testPort(50));
});
afterAll(async () => {
  endGroup(served);
  await deathOf(served.workerd);
  rmSync(directory, { recursive: true, force: true });
});

interface Said {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
}

/** The loop of a program with tools: it calls the model, runs the tools, and stops at an answer without calls. */
async function playOne({ base_url, key, prompt, rollout_id }: LeasedRollout, tools: readonly object[]): Promise<void> {
  const messages: object[] = [...prompt];
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const response = await fetch(`${base_url}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "any", messages, tools }),
    });
    // The rollout was stopped: it is too old, or its run has ended.
    if (response.status === 409) return;
    if (!response.ok) throw new Error(await response.text());
    const { choices } = (await response.json()) as { choices: { message: Said }[] };
    const said = choices[0]?.message ?? { role: "assistant" };
    messages.push(said, ...(said.tool_calls ?? []).map(answerOf));
    if ((said.tool_calls ?? []).length === 0) break;
  }
  await clientOf(served)
    .rollouts.finish(rollout_id, key, {})
    .catch(() => undefined);
}

function answerOf({ id, function: called }: NonNullable<Said["tool_calls"]>[number]): object {
  return { role: "tool", tool_call_id: id, content: resultOf(called.name, called.arguments) };
}

function resultOf(name: string, given: string): string {
  try {
    const { a, b } = JSON.parse(given) as { a: unknown; b: unknown };
    if (typeof a !== "number" || typeof b !== "number") return "a and b must be numbers";
    if (name === "add") return String(a + b);
    return String(name === "subtract" ? a - b : a * b);
  } catch {
    return "the arguments are not JSON";
  }
}

/** Plays until the returned function is called. */
async function playUntilStopped(tools: readonly object[]): Promise<() => Promise<void>> {
  let stopped = false;
  const playing = new Set<Promise<void>>();
  const lead = async () => {
    while (!stopped) {
      const leased = await clientOf(served).agents.lease(NAME, { worker: "test", max: 16, wait_s: 1 });
      for (const rollout of leased) {
        const played = playOne(rollout, tools).finally(() => playing.delete(played));
        playing.add(played);
      }
    }
  };
  const leading = lead();
  return async () => {
    stopped = true;
    await leading;
    await Promise.all(playing);
  };
}

test("held-out tasks improve from .32 by at least .25 while an agent plays the rollouts, and the ratio is 1 at lag 0", async () => {
  const { sampling, ...play } = calculator(served.policy);
  const environment = await loadEnvironment({ steps: 1, max: 9 });
  if (!(environment instanceof ToolEnv)) throw new TypeError("calculator has tools");
  const created = await createTraining(served, {
    ...{ ...play, sampling: { ...sampling, seed: SEED }, agent: { name: NAME, lease_s: 600 } },
    ...{ seed: SEED, holdout: HELD_OUT, max_steps: 24, lead: 0, group_size: 8, batch_size: { rollouts: 64 } },
  });
  const stop = await playUntilStopped(environment.toolDefinitions);
  const { run: id, token } = created;
  const checkpoint = join(directory, "learned");
  const trainer = new ReferenceTrainer({
    ...{ url: served.url, policy: served.policy, run: id, token, checkpoint, learningRate: 5e-4 },
  });
  const run = await created.ended(served);
  await trainer.ends();
  await stop();
  expect(run).toMatchObject({ status: "completed", training: { steps_trained: 24 } });
  const after = await evaluate(served, served.policy, SEED);
  expect(after.mean).toBeGreaterThan(UNTRAINED.mean + 0.25);
  const { data } = await clientOf(served).runs.metrics(id, { limit: 50 });
  expect(data).toHaveLength(24);
  // On a busy machine a rollout may wait for its worker until the weights have changed.
  const onPolicy = data.filter(({ values }) => values["off_policy/max"] === 0);
  expect(onPolicy.length).toBeGreaterThan(0);
  const ratios = onPolicy.flatMap(({ values }) => values["trainer/ratio"] ?? []);
  expect(ratios).toHaveLength(onPolicy.length);
  for (const ratio of ratios) expect(Math.abs(ratio - 1)).toBeLessThan(1e-6);
});
