/** A training run from its first group to its last step: the real objects, a model with token ids, a trainer by RPC. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { textOf } from "../../../../src/contract/messages.ts";
import { RunView } from "../../../../src/contract/run.ts";
import { BatchManifest, type Leased } from "../../../../src/contract/trainer-wire.ts";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../../src/core/entry.ts";
import { RunObject } from "../../../../src/index.ts";
import { PROCESS_SCHEDULER } from "../../../../src/kernel/kit/fair-scheduler.ts";
import { batchKeys, runObject, sampleKey, trainerObject } from "../../../../src/kernel/kit/names.ts";
import type { TrainerRpc } from "../../../../src/kernel/messages/training-wire.ts";
import { TrainingLoop } from "../../../../src/kernel/run/training/loop.ts";
import { acceptRun } from "../../../../src/kernel/service/accept-run.ts";
import { auditRun } from "../../../../src/kernel/service/audit-run.ts";
import type { Reply } from "../../../fakes/completion-body.ts";
import { expectLaw, inside, openPlatform, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";
import { script } from "../../script.ts";
import { TrainingByHand } from "../../training-rows.ts";

const Task = z.object({ question: z.string() });
const rows = Array.from({ length: 40 }, (_, at) => ({ question: `Is ${at} even?` }));

const yesOrNo = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, rows),
      rubric: {
        rewards: { yes: ({ completion }) => (textOf(completion.at(-1)) === "yes" ? 1 : 0) },
      },
    }),
});
const { args, needs, load } = yesOrNo;
const known = { id: "training-yes", version: "1.0.0", digest: "sha256:training-yes" };
registerOnce({ ...known, args, needs, load });

const REQUEST = {
  ...{ kind: "training", environment: "training-yes", group_size: 4, max_concurrent: 8 },
  ...{ max_steps: 3, batch_size: { rollouts: 8 }, trainer: { encoding: "jsonl" } },
};

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** With a version label, so that what is under way during an update can be trained on, too. */
const NAMED = ["yes", "no", "no", "yes"].map((content) => ({
  content,
  extra: { weight_version: 0 },
}));

async function begin(request: object, slots: readonly Reply[] = NAMED) {
  const model = script(["no"], undefined, { slots, tokens: true });
  const endpoint = { base_url: env.MODEL_URL };
  const response = await api.post("/v1/runs", { ...REQUEST, model, endpoint, ...request });
  if (response.status !== 202) throw new Error(await response.text());
  const run = RunView.parse(await response.json());
  return { id: run.id, trainer: trainerObject(env, api.scope, run.id) };
}

async function registered(trainer: TrainerRpc, version?: number): Promise<number> {
  const asked = { trainer_id: "t", kind: "by hand", last_acked: null };
  const answer = await trainer.register({ ...asked, ...(version !== undefined && { version }) });
  if (!answer.ok) throw new Error(JSON.stringify(answer.refusal));
  return answer.value.epoch;
}

async function leased(trainer: TrainerRpc, epoch: number, step: number): Promise<Leased> {
  const asked = { trainer_id: "t", epoch, want_step: step, max_wait_s: 20 };
  const answer = await trainer.lease(asked);
  if (!answer.ok || !("manifest" in answer.value)) throw new Error(JSON.stringify(answer));
  return answer.value;
}

/** Leases the batch and trains it. */
async function trainStep(trainer: TrainerRpc, epoch: number, step: number): Promise<BatchManifest> {
  const { lease, manifest } = await leased(trainer, epoch, step);
  const { batch_id, sha256 } = manifest;
  const done = { token: lease.token, epoch, batch_id, sha256, produced_version: step };
  const acked = await trainer.ack(lease.id, { ...done, metrics: { loss: step / 2 } });
  if (!acked.ok) throw new Error(JSON.stringify(acked.refusal));
  await publish(trainer, epoch, step);
  return manifest;
}

async function publish(trainer: TrainerRpc, epoch: number, version: number): Promise<void> {
  await trainer.report({ version, state: "published", epoch });
  await trainer.report({ version, state: "applied", epoch, replica: "policy" });
}

test("groups are scored, cut into batches and trained, step by step, until the last is acknowledged", async () => {
  const charge = vi.spyOn(PROCESS_SCHEDULER, "charge");
  const { id, trainer } = await begin({});
  const epoch = await registered(trainer);
  const manifests: BatchManifest[] = [];
  for (const step of [1, 2, 3]) manifests.push(await trainStep(trainer, epoch, step));
  const run = await api.ended(id);
  // Each batch counts 20 ms, however few rollouts it has.
  expect(charge.mock.calls.filter(([org, steps]) => org === api.scope.orgId && steps === 400_000)).toHaveLength(3);
  charge.mockRestore();
  expect([run.status, run.error]).toEqual(["completed", null]);
  expectLaw(run.counts);
  expect(run.training).toMatchObject({
    ...{ step: 4, steps_trained: 3, published: 3, policy_version: 3, lead: 0 },
    batches: { shipped: 3, acked: 3, ready: 0, dead: 0 },
  });
  expect(manifests.map(({ step, rollouts, groups }) => [step, rollouts, groups])).toEqual([
    [1, 8, 2],
    [2, 8, 2],
    [3, 8, 2],
  ]);
  const steps = await runObject(env, api.scope, id).stepMetrics(0, 10);
  expect(steps?.map(({ step, values }) => [step, values["trainer/loss"]])).toEqual([
    [1, 0.5],
    [2, 1],
    [3, 1.5],
  ]);
  await expectStored(id, manifests[0]);
  expect(await auditRun(env, api.scope, id, 0)).toMatchObject({ value: { violations: [] } });
  const gone = sampleKey(api.scope, id, manifests[1]?.objects[0]?.sha256 ?? "");
  await env.STORE.delete(gone);
  const audit = await auditRun(env, api.scope, id, 0);
  expect(audit).toMatchObject({
    value: { violations: [{ rule: "r2_has_every_object", detail: `${gone} is missing` }] },
  });
});

/** The manifest and the objects it names are in R2, and the credits of a group add up to zero. */
async function expectStored(id: string, manifest: BatchManifest | undefined): Promise<void> {
  if (manifest === undefined) throw new Error("there is no batch");
  const { manifest_key, credits_key } = batchKeys(api.scope, id, manifest.batch_id);
  const stored = await env.STORE.get(manifest_key);
  expect(BatchManifest.parse(await stored?.json())).toEqual(manifest);
  const credits = (await (await env.STORE.get(credits_key))?.text()) ?? "";
  const lines = credits
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ advantage }) => advantage)).toEqual([...[0.5, -0.5, -0.5, 0.5], ...[0.5, -0.5, -0.5, 0.5]]);
  for (const { sha256, bytes } of manifest.objects) {
    const object = await env.STORE.head(sampleKey(api.scope, id, sha256));
    expect(object?.size).toBe(bytes);
  }
}

test("samples of a version that cannot have been published are not trained on but counted, and the counted rows are those stored", async () => {
  const from = (content: string, weight_version: string | number) => ({
    content,
    extra: { weight_version },
  });
  const slots = [from("yes", 0), from("no", 0), from("no", 7), from("yes", "-1")];
  const asked = { max_steps: 2, batch_size: { rollouts: 4 } };
  const { id, trainer } = await begin(asked, slots);
  const epoch = await registered(trainer);
  for (const step of [1, 2]) await trainStep(trainer, epoch, step);
  const { training } = await api.ended(id);
  const stored = await storedRows(id);
  const rollouts = new Set(stored.map(({ rollout_id }) => rollout_id)).size;
  expect(training?.samples).toEqual({
    ...{ clean: rollouts, forked: stored.length - rollouts, realigned: 0 },
    untrainable: { unpublished_version: stored.length },
  });
  expect(stored.length).toBeGreaterThanOrEqual(8);
  const versions = stored.flatMap(({ weight_versions }) => weight_versions);
  expect(Math.max(...versions.map(({ version }) => version))).toBeLessThanOrEqual(2);
  const [first] = (await runObject(env, api.scope, id).stepMetrics(0, 1)) ?? [];
  expect(first?.values["rollout/untrainable/unpublished_version"]).toBeGreaterThanOrEqual(4);
});

interface StoredRow {
  readonly rollout_id: string;
  readonly weight_versions: readonly { readonly version: number }[];
}

/** Every row of the run in R2, read directly. */
async function storedRows(id: string): Promise<StoredRow[]> {
  const { objects } = await env.STORE.list({ prefix: sampleKey(api.scope, id, "") });
  const read = objects.map(async ({ key }) => {
    const object = await env.STORE.get(key);
    const plain = object?.body.pipeThrough(new DecompressionStream("gzip"));
    const lines = (await new Response(plain).text()).trimEnd().split("\n");
    return lines.map((line): StoredRow => JSON.parse(line));
  });
  return (await Promise.all(read)).flat();
}

test("a batch that the trainer gives up pauses the run with the reason, also over a restart, until it is resumed", async () => {
  const { id, trainer } = await begin({ max_steps: 1 });
  const epoch = await registered(trainer);
  const { lease } = await leased(trainer, epoch, 1);
  const gone = { token: lease.token, epoch, reason: "oom", retryable: false };
  await trainer.nack(lease.id, gone);
  await untilEvent(id, "run.paused");
  const run = await api.run(id);
  expect([run.status, run.status_reason]).toEqual(["paused", { state: "paused", reason: "batch 1 was given up: oom" }]);
  await abortAllDurableObjects();
  expect((await api.run(id)).training).toMatchObject({ batches: { dead: 1, ready: 0 } });
  expect((await api.post(`/v1/runs/${id}/resume`, {})).status).toBe(200);
  const again = trainerObject(env, api.scope, id);
  await trainStep(again, epoch, 1);
  expect((await api.ended(id)).training).toMatchObject({ steps_trained: 1, batches: { dead: 0 } });
  const told = (await api.events(id)).map(({ event }) => event);
  expect(told.filter((event) => /^(batch|run\.[pr]a?[ue]s)/.test(event))).toEqual([
    ...["batch.ready", "batch.dead", "run.paused", "run.resumed", "batch.acked"],
  ]);
});

async function untilEvent(id: string, name: string): Promise<void> {
  const run = runObject(env, api.scope, id);
  for (let after = 0; ; ) {
    const { events = [], ended = true } = (await run.events(after, 10_000)) ?? {};
    if (events.some(({ event }) => event === name)) return;
    if (ended) throw new Error(`${id} ended without ${name}`);
    after = events.at(-1)?.id ?? after;
  }
}

test("weights are evaluated at the start and every few steps, and the means are in the series", async () => {
  const { id, trainer } = await begin({ max_steps: 2, eval: { every: 2, num_examples: 3 } });
  const epoch = await registered(trainer);
  await trainStep(trainer, epoch, 1);
  await trainStep(trainer, epoch, 2);
  await api.ended(id);
  // The last weights are published once their batch is acknowledged: their eval outlives the run.
  let { training } = await api.run(id);
  while (training?.evals.length !== 2) {
    await api.inRun(id, (run) => run.alarm());
    training = (await api.run(id)).training;
  }
  expect(training.evals.map(({ step, policy_version }) => [step, policy_version])).toEqual([
    [0, 0],
    [2, 2],
  ]);
  for (const { run_id } of training.evals) {
    const { metadata, report, kind } = await api.ended(run_id);
    expect([kind, metadata, report.reward.mean]).toMatchObject(["eval", { training_run: id }, 1]);
  }
  await api.inRun(id, async (run) => {
    run.now = () => Date.now() + 3600_000;
    await run.alarm();
  });
  const steps = (await runObject(env, api.scope, id).stepMetrics(-1, 10)) ?? [];
  expect(steps.map(({ step, values }) => [step, values["eval/training-yes/reward"]])).toEqual([
    [0, 1],
    [1, undefined],
    [2, 1],
  ]);
});

test("a cancelled run notifies its trainer that it is over", async () => {
  const { id, trainer } = await begin({});
  const epoch = await registered(trainer);
  await leased(trainer, epoch, 1);
  await api.post(`/v1/runs/${id}/cancel`, {});
  expect((await api.ended(id)).status).toBe("cancelled");
  const asked = { trainer_id: "t", epoch, want_step: 1, max_wait_s: 0 };
  expect(await trainer.lease(asked)).toMatchObject({ refusal: { code: "run_finished" } });
});

test("whatever fails between the cut and the trainer, the batch is written again with the same bytes, and offered", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, async (_, { storage }) => {
    const run_id = `run_${crypto.randomUUID()}`;
    const run = new TrainingByHand(storage, { max_steps: 1 }, { scope: api.scope, run_id });
    run.dispatch();
    run.settleGroups();
    const written: string[] = [];
    for (const puts of [0, 1, 2]) {
      const bindings = { ...env, STORE: breaksAfter(puts, written) };
      const loop = new TrainingLoop(bindings, run.store, () => run.now, {
        toScore: () => undefined,
        acceptEval: acceptRun,
      });
      await loop.advance(run.spec);
      run.restart();
    }
    const [batch] = run.store.training.batchesIn("ready");
    expect(batch?.sha256).toMatch(/^[0-9a-f]{64}$/);
    const [credits, again, manifest] = [written[0], written[1], written[2]];
    expect([credits, written.length]).toEqual([again, 3]);
    expect(JSON.parse(manifest ?? "")).toMatchObject({ sha256: batch?.sha256, rollouts: 4 });
    const trainer = trainerObject(env, api.scope, run_id);
    expect(await trainer.batch(1)).toMatchObject({ batch_id: batch?.batch_id, state: "ready" });
  });
});

/** R2 that accepts this many more objects, and then none. */
function breaksAfter(puts: number, written: string[]): R2Bucket {
  let left = puts;
  const put = (...[key, value]: [string, string]) => {
    if (left === 0) return Promise.reject(new Error("the store is away"));
    left -= 1;
    written.push(value);
    return env.STORE.put(key, value);
  };
  return new Proxy(env.STORE, {
    get: (store, name) => (name === "put" ? put : Reflect.get(store, name).bind(store)),
  });
}
