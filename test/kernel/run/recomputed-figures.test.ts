/**
 * Figures of a group of environments, computed again from stored data: result rows, samples and credits of a batch, all
 * read over HTTP. The arithmetic is implemented separately in this file.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import type { ResultRow } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, EnvGroup, SingleTurnEnv, textOf } from "../../../src/core/entry.ts";
import { untilBatchReady } from "../batch-ready.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { type Script, script } from "../script.ts";

const Task = z.object({ question: z.string() });
/** All members have the same reward under different names: how much of the longest answer was given. */
function member(name: string, tasks: number, longest: number): SingleTurnEnv<z.output<typeof Task>> {
  const rows = Array.from({ length: tasks }, (_, at) => ({ question: `${name} ${at}` }));
  return new SingleTurnEnv({
    dataset: dataset(Task, rows),
    rubric: {
      rewards: {
        right: ({ completion }) => {
          const said = textOf(completion[0]);
          if (said === "unscored") throw new Error("no score");
          return said.length / longest;
        },
      },
    },
  });
}
const grouped = defineEnvironment({
  args: z.strictObject({}),
  build: () => {
    const tools = new EnvGroup({ sql: member("sql", 3, 8), shell: member("shell", 2, 10) });
    return new EnvGroup({ tools, math: member("math", 4, 4) });
  },
});
const { args, needs, load } = grouped;
registerOnce({ id: "figures", version: "1.0.0", digest: "sha256:figures", args, needs, load });

const MEMBERS = ["math", "tools/shell", "tools/sql"];

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** The label that verifiers gives a row. */
function labelOf({ info }: Pick<ResultRow, "info">): string {
  const { env_id } = z.object({ env_id: z.union([z.string(), z.array(z.string())]) }).parse(info);
  return typeof env_id === "string" ? env_id : env_id.join("/");
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The mean of the task means, and its standard error. */
function estimate(rows: readonly ResultRow[], value: (row: ResultRow) => number | null | undefined) {
  const tasks = Map.groupBy(rows, ({ task_key }) => task_key);
  const means = [...tasks.values()].flatMap((of) => {
    const values = of.flatMap((row) => value(row) ?? []);
    return values.length === 0 ? [] : [mean(values)];
  });
  const middle = mean(means);
  const squares = means.reduce((sum, each) => sum + (each - middle) ** 2, 0);
  const se = means.length < 2 ? null : Math.sqrt(squares / (means.length - 1) / means.length);
  return { mean: middle, se, tasks: means.length };
}

const FAILS = { fault: { kind: "status", status: 400 } } as const;
const WHEN: Script["when"] = {
  "math 0": ["yes"],
  "math 1": ["no"],
  "math 2": ["unscored"],
  "sql 0": ["longer"],
  "sql 1": [FAILS],
  "sql 2": ["a"],
  "shell 0": ["abcdefghi"],
};

test("each member's mean, standard error, counts and metrics are those of its own rows, nested or not", async () => {
  const model = script(["xx"], WHEN);
  const asked = { environment: "figures", model, rollouts_per_example: 2, min_scored: 0 };
  const { id, report } = await api.finish(asked);
  const rows = await api.results(id, "limit=1000");
  expect(rows).toHaveLength(18);
  expect(Object.keys(report.members ?? {})).toEqual(MEMBERS);
  for (const name of MEMBERS) {
    const own = rows.filter((row) => labelOf(row) === name);
    const reward = estimate(own, (row) => row.reward);
    const right = estimate(own, ({ metrics }) => metrics["right"]);
    const told = report.members?.[name];
    expect(told?.reward.mean).toBeCloseTo(reward.mean, 12);
    expect(told?.reward.se).toBeCloseTo(reward.se ?? Number.NaN, 12);
    expect(told?.metrics["right"]?.mean).toBeCloseTo(right.mean, 12);
    expect(told?.metrics["right"]?.se).toBeCloseTo(right.se ?? Number.NaN, 12);
    expect(told?.reward).toMatchObject({
      n_tasks: reward.tasks,
      n_rollouts: own.filter(({ outcome }) => outcome === "scored").length,
      n_unscored: own.filter(({ outcome }) => outcome === "unscored").length,
      n_error: own.filter(({ outcome }) => outcome === "failed").length,
    });
  }
  const means = MEMBERS.map((name) => report.members?.[name]?.metrics["right"]?.mean);
  expect(new Set(means).size).toBe(3);
  expect(report.reward.mean).toBeCloseTo(estimate(rows, (row) => row.reward).mean, 12);
  expect(report.members?.["tools/sql"]?.reward).toMatchObject({ n_error: 2, n_rollouts: 4 });
  expect(report.members?.["math"]?.reward).toMatchObject({ n_unscored: 2, n_rollouts: 6 });
});

test("an attempt that replaced another counts in its member's figures, and the earlier one does not", async () => {
  const model = script(["xx"], { ...WHEN, "sql 1": [{ ...FAILS, attempts: 1, reply: "abcd" }] });
  const { id, report } = await api.finish({ environment: "figures", model, min_scored: 0 });
  expect(report.members?.["tools/sql"]?.reward).toMatchObject({ n_error: 1, n_rollouts: 2 });
  expect((await api.post(`/v1/runs/${id}/retry`, { classes: ["provider"] })).status).toBe(200);
  const again = await api.ended(id);
  expect(again.report.members?.["tools/sql"]?.reward).toMatchObject({ n_error: 0, n_rollouts: 3 });
  expect(again.report.members?.["tools/sql"]?.reward.mean).toBeCloseTo((6 + 4 + 1) / 8 / 3, 12);
});

async function unzipped(response: Response): Promise<string> {
  if (response.body === null) throw new Error("an empty reply");
  const text = response.body.pipeThrough(new DecompressionStream("gzip"));
  return new TextDecoder().decode(await new Response(text).arrayBuffer());
}

const linesOf = <Line>(text: string, schema: z.ZodType<Line>): Line[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => schema.parse(JSON.parse(line)));
const Sample = z.object({ sample_id: z.string(), rollout_id: z.string(), env: z.string() });
const Manifest = z.object({ objects: z.array(z.object({ sha256: z.string() })) });
const Credit = z.object({ sample_id: z.string(), reward: z.number(), advantage: z.number() });

test("samples have their member's name, and the member's series of a step is computed from its own rows", async () => {
  const slots = ["a", "abc"];
  const model = script(["xx"], undefined, { slots, tokens: true });
  const size = { group_size: 2, batch_size: { rollouts: 18 }, max_steps: 1, lead: 0 };
  const response = await api.post("/v1/runs", {
    ...{ kind: "training", environment: "figures", model, endpoint: { base_url: env.MODEL_URL } },
    ...{ ...size, trainer: { encoding: "jsonl" } },
  });
  expect(response.status).toBe(202);
  const { id } = await response.json<{ id: string }>();
  await untilBatchReady(api, id);
  const at = `/v1/runs/${id}/batches/1`;
  const { objects } = Manifest.parse(await (await api.ask(at)).json());
  const texts = await Promise.all(
    objects.map(async ({ sha256 }) => unzipped(await api.ask(`${at}/objects/${sha256}`))),
  );
  const samples = texts.flatMap((text) => linesOf(text, Sample));
  const credits = linesOf(new TextDecoder().decode(await (await api.ask(`${at}/credits`)).arrayBuffer()), Credit);
  const rows = await api.results(id, "limit=1000");
  const label = new Map(rows.map((row) => [row.rollout_id, labelOf(row)]));
  expect(samples).toHaveLength(18);
  expect(samples.map((sample) => sample.env)).toEqual(samples.map(({ rollout_id }) => label.get(rollout_id)));
  const reply = await api.ask(`/v1/runs/${id}/metrics?after_step=0`);
  const { data } = await reply.json<{ data: { values: Record<string, number> }[] }>();
  const series = data[0]?.values ?? {};
  for (const name of MEMBERS) {
    const own = samples.filter((sample) => sample.env === name);
    const rewards = credits.flatMap(({ sample_id, reward }) =>
      own.some((sample) => sample.sample_id === sample_id) ? [reward] : [],
    );
    expect(series[`train/${name}/effective/reward/mean`]).toBeCloseTo(mean(rewards), 12);
    expect(series[`train/${name}/effective/reward/max`]).toBe(Math.max(...rewards));
    const shipped = new Set(own.map(({ rollout_id }) => rollout_id));
    const arrived = rows.filter(({ rollout_id }) => shipped.has(rollout_id));
    expect(series[`train/${name}/all/reward/mean`]).toBeCloseTo(
      mean(arrived.flatMap(({ reward }) => reward ?? [])),
      12,
    );
  }
  expect(series["train/agg/effective/reward/mean"]).toBeCloseTo(mean(credits.map(({ reward }) => reward)), 12);
  await api.post(`/v1/runs/${id}/cancel`, {});
});
