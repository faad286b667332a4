/** A run of a group of environments whose members have settings of their own, from its request to its last batch. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../../../../src/contract/messages.ts";
import { RunView } from "../../../../src/contract/run.ts";
import type { BatchManifest } from "../../../../src/contract/trainer-wire.ts";
import { dataset, defineEnvironment, EnvGroup, SingleTurnEnv } from "../../../../src/core/entry.ts";
import { advantagesOf } from "../../../../src/core/training/advantage.ts";
import { parseCredits } from "../../../../src/core/training/batch.ts";
import { batchKeys, runObject, trainerObject } from "../../../../src/kernel/kit/names.ts";
import type { TrainerRpc } from "../../../../src/kernel/messages/training-wire.ts";
import { auditRun } from "../../../../src/kernel/service/audit-run.ts";
import { expectLaw, openPlatform, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";
import { script } from "../../script.ts";

const Task = z.object({ question: z.string() });
const asking = (name: string, rows: number) =>
  new SingleTurnEnv({
    dataset: dataset(Task, { length: rows, row: (at) => ({ question: `Is ${name} ${at} even?` }) }),
    rubric: { rewards: { yes: ({ completion }) => (textOf(completion.at(-1)) === "yes" ? 1 : 0) } },
  });
const both = defineEnvironment({
  args: z.strictObject({}),
  build: () => new EnvGroup({ few: asking("few", 6), many: asking("many", 40) }),
});
const other = defineEnvironment({ args: z.strictObject({}), build: () => asking("other", 5) });
for (const [id, { args, needs, load }] of Object.entries({ both, other })) {
  registerOnce({ id: `members-${id}`, version: "1.0.0", digest: `sha256:members-${id}`, args, needs, load });
}

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** With a version label, so that what is sampled during an update can be trained on, too. */
const SLOTS = ["yes", "no", "no", "no"].map((content) => ({ content, extra: { weight_version: 0 } }));
const RLOO = { name: "rloo", singleton: "zero" } as const;
const MEAN = { name: "mean" } as const;
const SIZES = { few: 4, many: 2 };

async function begin(request: object) {
  const asked = {
    ...{ kind: "training", environment: "members-both", max_concurrent: 8, endpoint: { base_url: env.MODEL_URL } },
    ...{ model: script(["no"], undefined, { slots: SLOTS, tokens: true }), trainer: { encoding: "jsonl" } },
    ...{ batch_size: { rollouts: 12 }, max_steps: 3, shuffle: true, holdout: 4 },
    members: { few: { ratio: 1, group_size: 4, advantage: RLOO }, many: { ratio: 2, group_size: 2 } },
    ...request,
  };
  const response = await api.post("/v1/runs", asked);
  if (response.status !== 202) throw new Error(await response.text());
  const { id } = RunView.parse(await response.json());
  return id;
}

/** Leases the batch of the step, trains it and publishes its weights. */
async function trainStep(trainer: () => TrainerRpc, epoch: number, step: number): Promise<BatchManifest> {
  const lease = await trainer().lease({ trainer_id: "t", epoch, want_step: step, max_wait_s: 20 });
  if (!lease.ok || !("manifest" in lease.value)) throw new Error(JSON.stringify(lease));
  const { manifest } = lease.value;
  const { batch_id, sha256 } = manifest;
  const done = { token: lease.value.lease.token, epoch, batch_id, sha256, produced_version: step, metrics: {} };
  const acked = await trainer().ack(lease.value.lease.id, { ...done, published: {} });
  if (!acked.ok) throw new Error(JSON.stringify(acked.refusal));
  await trainer().report({ version: step, state: "applied", epoch, replica: "policy" });
  return manifest;
}

test("groups of both members are sampled, credited and shipped by their own settings, also across a kill", async () => {
  const id = await begin({});
  const trainer = () => trainerObject(env, api.scope, id);
  const registered = await trainer().register({ trainer_id: "t", kind: "by hand", last_acked: null });
  if (!registered.ok) throw new Error(JSON.stringify(registered.refusal));
  const manifests: BatchManifest[] = [];
  for (const step of [1, 2, 3]) {
    manifests.push(await trainStep(trainer, registered.value.epoch, step));
    if (step === 1) await abortAllDurableObjects();
  }
  const run = await api.ended(id);
  expect([run.status, run.error]).toEqual(["completed", null]);
  expectLaw(run.counts);
  expect(await auditRun(env, api.scope, id, 0)).toMatchObject({ value: { violations: [] } });
  const results = await api.results(id, "limit=1000");
  const memberOf = new Map(results.map(({ rollout_id, info }) => [rollout_id, String(Object(info)["env_id"])]));
  for (const manifest of manifests) await expectCredited(id, manifest, memberOf);
  await expectListed(id, run);
});

async function expectCredited(id: string, manifest: BatchManifest, memberOf: ReadonlyMap<string, string>) {
  expect(manifest.estimators).toEqual({
    few: { name: "rloo", version: 1, params: { singleton: "zero" } },
    many: { name: "mean", version: 1, params: {} },
  });
  expect(manifest.estimator.name).toBe("mean");
  const { credits_key } = batchKeys(api.scope, id, manifest.batch_id);
  const credits = parseCredits((await (await env.STORE.get(credits_key))?.text()) ?? "");
  const groups = Map.groupBy(credits, ({ sample_id }) => sample_id.split("_").slice(0, 3).join("_"));
  expect(groups.size).toBe(manifest.groups);
  for (const lines of groups.values()) {
    const member = memberOf.get(lines[0]?.sample_id.replace(/\.\d+$/, "") ?? "");
    if (member !== "few" && member !== "many") throw new Error(`a rollout of ${member}`);
    expect(lines).toHaveLength(SIZES[member]);
    const rewards = lines.map(({ reward }) => reward);
    const expected = advantagesOf(member === "few" ? RLOO : MEAN, rewards);
    for (const [at, { advantage }] of lines.entries()) expect(advantage).toBeCloseTo(expected[at] ?? Number.NaN, 12);
    expect(rewards).toContain(1);
  }
}

/** What lists, the report and the series say about the members. */
async function expectListed(id: string, { training, report }: RunView) {
  const [few, many] = training?.members ?? [];
  expect(few).toMatchObject({ name: "few", ratio: 1, group_size: 4, min_group_size: 2, advantage: RLOO });
  expect(many).toMatchObject({ name: "many", ratio: 2, group_size: 2, min_group_size: 2, advantage: MEAN });
  const opened = [few?.groups_opened ?? 0, many?.groups_opened ?? 0];
  expect(Math.abs((opened[1] ?? 0) - (2 / 3) * ((opened[0] ?? 0) + (opened[1] ?? 0)))).toBeLessThan(1);
  expect(report.members?.["few"]?.reward.mean).toBe(0.25);
  expect(report.members?.["many"]?.reward.mean).toBe(0.5);
  // The groups of one member are twice as large as those of the other: each is one task.
  const scoredTasks = (report.members?.["few"]?.reward.n_tasks ?? 0) + (report.members?.["many"]?.reward.n_tasks ?? 0);
  expect(report.reward.n_tasks).toBe(scoredTasks);
  const listed = await (await api.ask(`/v1/runs/${id}/groups?limit=100`)).json<{
    data: { member: string; counts: { dispatched: number } }[];
  }>();
  const whole = listed.data.filter(({ member }) => member !== null);
  for (const { member, counts } of whole) expect(counts.dispatched).toBe(member === "few" ? 4 : 2);
  const steps = (await runObject(env, api.scope, id).stepMetrics(0, 10)) ?? [];
  const shipped = steps.flatMap(({ values }) => [
    values["batch/few/rollouts"] ?? 0,
    values["batch/many/rollouts"] ?? 0,
  ]);
  expect(shipped.reduce((sum, count) => sum + count, 0)).toBe(
    steps.reduce((sum, { values }) => sum + (values["batch/rollouts"] ?? 0), 0),
  );
}

test("several evals of a run have curves of their own, each at its own steps", async () => {
  const evals = [
    { name: "own", every: 1, num_examples: 4 },
    { environment: "members-other", every: 3, num_examples: 5, at_start: false },
  ];
  const id = await begin({ evals });
  const trainer = () => trainerObject(env, api.scope, id);
  const registered = await trainer().register({ trainer_id: "t", kind: "by hand", last_acked: null });
  if (!registered.ok) throw new Error(JSON.stringify(registered.refusal));
  for (const step of [1, 2, 3]) {
    await trainStep(trainer, registered.value.epoch, step);
    // The evals of these weights begin before the next ones are published.
    await untilBegun(id, [2, 3, 5][step - 1] ?? 0);
    if (step === 2) await abortAllDurableObjects();
  }
  await api.ended(id);
  const { training } = await api.run(id);
  expect(training?.evals.map(({ name, step }) => [name, step])).toEqual([
    ["own", 0],
    ["own", 1],
    ["own", 2],
    ["own", 3],
    ["members-other", 3],
  ]);
  for (const { run_id, name } of training?.evals ?? []) {
    const { metadata, environment, status } = await api.ended(run_id);
    expect([status, metadata["eval"], metadata["training_run"]]).toEqual(["completed", name, id]);
    expect(environment.id).toBe(name === "own" ? "members-both" : "members-other");
  }
  await api.inRun(id, async (run) => {
    run.now = () => Date.now() + 3600_000;
    await run.alarm();
  });
  const steps = (await runObject(env, api.scope, id).stepMetrics(-1, 10)) ?? [];
  const curves = steps.map(({ step, values }) => [
    step,
    values["eval/own/reward"],
    values["eval/members-other/reward"],
  ]);
  expect(curves).toEqual([
    [0, 1, undefined],
    [1, 1, undefined],
    [2, 1, undefined],
    [3, 1, 1],
  ]);
});

async function untilBegun(id: string, evals: number): Promise<void> {
  while (((await api.run(id)).training?.evals.length ?? 0) < evals) await api.inRun(id, (run) => run.alarm());
}

test("a run whose groups differ in size is refused a rescore", async () => {
  const id = await begin({});
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
  const reply = await api.post(`/v1/runs/${id}/rescore`, {});
  expect(reply.status).toBe(409);
  expect(await reply.json()).toMatchObject({ error: { message: expect.stringContaining("cannot be rescored") } });
});
