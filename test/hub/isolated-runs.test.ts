/** Whole runs of published environments, whose code plays in isolates of its own. */
import { beforeAll, expect, inject, test } from "vitest";
import * as z from "zod";
import { expectLaw, openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { pack, send } from "./packages.ts";

let platform: TestApi;
const owner = `isolated-${crypto.randomUUID().slice(0, 8)}`;
beforeAll(async () => {
  platform = await openPlatform();
});

const guess = (number: number) => ({ tool_calls: [{ name: "guess", arguments: { number } }] });
const add = { tool_calls: [{ name: "add", arguments: { a: 2, b: 3 } }] };

async function played(environment: string, turns: Parameters<typeof script>[0]) {
  const run = await platform.finish({ environment, seed: 7, num_examples: 6, model: script(turns) });
  expectLaw(run.counts);
  const results = (await platform.results(run.id)).sort((a, b) => a.example_id - b.example_id);
  const rollouts = await Promise.all(results.map(({ rollout_id }) => platform.rollout(rollout_id)));
  const kept = rollouts.map(({ reward, stop_condition, state, completion, scores, error, task_key }) => {
    return { reward, stop_condition, state, completion, scores, error, task_key };
  });
  // The scripted model numbers its tool calls over all runs.
  const text = JSON.stringify({ counts: run.counts, reward: run.report.reward, kept }).replaceAll(
    /call_\d+_/g,
    "call_",
  );
  return z.object({ counts: z.json(), reward: z.json(), kept: z.array(z.json()) }).parse(JSON.parse(text));
}

test.each([
  ["guess-number", [guess(50), guess(25), guess(12), "I give up."]],
  ["calculator", [add, add, add, "5"]],
] as const)(
  "a run of %s in isolates of its own has the rollouts and rewards of one in the platform's",
  async (id, turns) => {
    const code = inject("bundles")[id]?.text ?? "";
    const published = await send(platform, await pack({ name: `${owner}/${id}`, version: "1.0.0", code }));
    expect(published.status, await published.text()).toBe(201);
    const here = await played(id, [...turns]);
    expect(here.kept).toHaveLength(6);
    expect(await played(`${owner}/${id}`, [...turns])).toEqual(here);
  },
);
