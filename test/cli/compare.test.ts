/** `rollcall compare` with several baselines, against a platform whose runs were played. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { command } from "./run-rollcall.ts";

let platform: Platform;
const ids: Record<string, string> = {};
/** How many of 12 questions each model has right, from the first on. */
const RIGHT: Readonly<Record<string, number>> = { fresh: 5, better: 12, alike: 5, worse: 0 };

const PRICES = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };

beforeAll(async () => {
  platform = await bootPlatform({
    directory: null,
    port: testPort(0),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const model = await startScriptedModel({
    reply: ({ model: name, messages }) => {
      const item = Number(/item (\d+)/.exec(JSON.stringify(messages))?.[1]);
      return item < (RIGHT[name] ?? 0) ? "It is \\boxed{42}." : "It is \\boxed{41}.";
    },
  });
  const dataset = Array.from({ length: 12 }, (_, at) => ({ question: `What is item ${at}?`, answer: "#### 42" }));
  for (const name of Object.keys(RIGHT)) {
    const { id } = await client.runs.create({
      ...{ environment: "gsm8k", model: name, endpoint: { base_url: model.url, prices: PRICES }, dataset },
    });
    for await (const _ of client.runs.events(id));
    ids[name] = id;
  }
  await model.stop();
});
afterAll(() => platform.stop());

function compare(names: readonly string[], ...flags: readonly string[]) {
  const runs = names.map((name) => ids[name] ?? name);
  return command(["compare", ...runs, ...flags], { env: { ROLLCALL_DIR: platform.directory } });
}

test("several baselines have a row each, with p and its correction, and one list of tasks", async () => {
  const { code, stdout } = await compare(["fresh", "better", "alike", "worse"], "--limit", "3");
  expect(code).toBe(0);
  expect(stdout).toMatch(/p +p by Holm +better +worse +same/);
  expect(stdout).toMatch(new RegExp(`\n${ids["better"]} .*−0\\.583 .*0 +7 +5\n`));
  expect(stdout).toMatch(new RegExp(`\n${ids["worse"]} .*\\+0\\.417 .*5 +0 +7\n`));
  expect(stdout).toMatch(/12 tasks matched; detectable from .*; costs −?\$?[^;]* per rollout\); differs in model/);
  expect(stdout).toMatch(/There are more: --after [0-9a-f]+/);
});

test("the object of several baselines has each comparison, its corrected p, and the tasks of all", async () => {
  const { stdout } = await compare(["fresh", "better", "alike", "worse"], "--json", "--tasks", "all");
  const printed = JSON.parse(stdout);
  expect(printed.object).toBe("comparisons");
  expect(printed.data.map(({ baseline }: { baseline: { id: string } }) => baseline.id)).toEqual([
    ids["better"],
    ids["alike"],
    ids["worse"],
  ]);
  const [better, alike, worse] = printed.data;
  // Two of the three have a p; the smaller is doubled.
  expect(alike.p_holm).toBeNull();
  expect(better.p_holm).toBeCloseTo(2 * better.difference.p, 12);
  expect(worse.p_holm).toBeCloseTo(worse.difference.p, 12);
  expect(better.cost_difference).toEqual({ all: expect.any(Number), per_rollout: expect.any(Number) });
  expect([better.tasks, printed.gates]).toEqual([undefined, undefined]);
  expect(printed.tasks.data).toHaveLength(12);
  expect(printed.tasks.data[0].baselines).toHaveLength(3);
});

test("the gates hold only if they hold against each baseline", async () => {
  const good = await compare(["fresh", "alike", "worse"], "--fail-if-worse");
  expect(good.code).toBe(0);
  expect(good.stdout).toMatch(/\nbaseline +passed +against run_\w+: the paired difference 0\.000/);
  const bad = await compare(["fresh", "alike", "better"], "--fail-if-worse", "--json");
  expect(bad.code).toBe(3);
  expect(JSON.parse(bad.stdout).gates).toMatchObject([
    { gate: "baseline", verdict: "passed" },
    { gate: "baseline", verdict: "failed", message: expect.stringContaining(`against ${ids["better"]}: `) },
  ]);
  expect((await compare(["fresh", "alike", "better"], "--max-drop", "0.5")).code).toBe(5);
  expect((await compare(["fresh", "alike"], "--max-drop", "0")).code).toBe(0);
  // The drop is significant, but smaller than the allowed one.
  const both = await compare(["fresh", "better"], "--fail-if-worse", "--max-drop", "1", "--json");
  const gates: { verdict: string }[] = JSON.parse(both.stdout).gates;
  expect([both.code, gates.map(({ verdict }) => verdict)]).toEqual([3, ["failed", "passed"]]);
  const single = await compare(["fresh", "better"], "--fail-if-worse", "--json");
  expect([single.code, JSON.parse(single.stdout).gates.length]).toEqual([3, 1]);
});

test("missing, repeated and too many baselines are refused with the reason", async () => {
  const nine = ["fresh", ...Array.from({ length: 8 }, (_, at) => `run_${at}`)];
  for (const [names, flags, message] of [
    [["fresh"], [], "two or more runs are required"],
    [["fresh", "alike", "alike"], [], "is given twice"],
    [nine, [], "at most 7 baselines, not 8"],
    [["fresh", "alike", "fresh"], [], "is the run itself"],
    [["fresh", "alike", "run_nope"], [], "run_nope"],
    [["fresh", "alike"], ["--max-drop", "-1"], "--max-drop: must be 0 or more"],
  ] as const) {
    const { code, stderr } = await compare(names, ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
});
