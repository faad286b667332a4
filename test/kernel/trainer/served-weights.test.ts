/**
 * Which weights sampled a turn whose engine names none: those that, by the trainer's reports, were served during its
 * whole call. The model answers each call when the test says so.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../../../src/contract/messages.ts";
import { RunView } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../src/core/entry.ts";
import { runObject, sampleKey, trainerObject } from "../../../src/kernel/kit/names.ts";
import type { TrainerRpc } from "../../../src/kernel/messages/training-wire.ts";
import { TrainerObject } from "../../../src/kernel/trainer/object.ts";
import { inside, openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script } from "../script.ts";
import { GOING, openDelivery, storeBatch } from "../trainer-batch.ts";

const Task = z.object({ question: z.string() });
const twoTurns = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(Task, [{ question: "One?" }, { question: "Two?" }, { question: "Three?" }]),
      maxTurns: 2,
      envResponse: () => [{ role: "user", content: "And then?" }],
      rubric: {
        rewards: { yes: ({ completion }) => (textOf(completion[0]) === "yes" ? 1 : 0) },
      },
    }),
});
const { args, needs, load } = twoTurns;
registerOnce({ id: "two-turns", version: "1.0.0", digest: "sha256:two-turns", args, needs, load });

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** Resolves when the model has got this many requests for the turn. */
async function asked(model: string, id: string, turn: number, times = 1): Promise<void> {
  for (let count = 1; ; ) {
    const seen = await requestsOf(model, count);
    if (seen.filter(({ idempotency_key }) => idempotency_key === `${id}:${turn}`).length >= times) return;
    count = seen.length + 1;
  }
}

async function answerAll(ids: readonly string[], turn: number): Promise<void> {
  for (const id of ids) await release(`${id}:${turn}`);
}

async function trained(
  trainer: TrainerRpc,
  epoch: number,
  step: number,
  out: { published?: object } = { published: {} },
): Promise<void> {
  const leased = await trainer.lease({ trainer_id: "t", epoch, want_step: step, max_wait_s: 20 });
  if (!leased.ok || !("manifest" in leased.value)) throw new Error(JSON.stringify(leased));
  const { lease, manifest } = leased.value;
  const { batch_id, sha256 } = manifest;
  const done = { token: lease.token, epoch, batch_id, sha256, produced_version: step, metrics: {} };
  expect(await trainer.ack(lease.id, { ...done, ...out })).toMatchObject({ ok: true });
}

const REGISTER = { trainer_id: "t", kind: "by hand", last_acked: null };

async function registered(trainer: TrainerRpc): Promise<number> {
  const answer = await trainer.register(REGISTER);
  if (!answer.ok) throw new Error(JSON.stringify(answer.refusal));
  return answer.value.epoch;
}

const applied = (version: number, epoch: number) => ({ version, state: "applied", epoch, replica: "gpu-0" }) as const;

/** The version spans of the rows of a batch, by rollout. */
async function spansOf(run: string, trainer: TrainerRpc, step: number): Promise<unknown[]> {
  const batch = await trainer.batch(step, { max_wait_s: 20 });
  const manifest = await env.STORE.get(batch?.manifest_key ?? "");
  const { objects } = Object(await manifest?.json());
  const lines: string[] = [];
  for (const { sha256 } of objects) {
    const object = await env.STORE.get(sampleKey(api.scope, run, sha256));
    const plain = object?.body.pipeThrough(new DecompressionStream("gzip"));
    lines.push(...(await new Response(plain).text()).trimEnd().split("\n"));
  }
  return lines
    .map((line) => JSON.parse(line))
    .map(({ rollout_id, weight_versions, policy_version_end }) => [
      rollout_id,
      weight_versions.map(({ version }: { version: number }) => version),
      policy_version_end,
    ]);
}

test("turns after new weights count to them, one that met both counts to the older, and a reset before them voids their group", async () => {
  const model = script(["no"], undefined, { slots: ["yes", "no", "no"], tokens: true, held: true });
  const response = await api.post("/v1/runs", {
    ...{ kind: "training", environment: "two-turns", model, group_size: 3, max_concurrent: 6 },
    ...{ batch_size: { rollouts: 2 }, max_steps: 3, trainer: { encoding: "jsonl" } },
    ...{ endpoint: { base_url: env.MODEL_URL }, limits: { call_timeout_s: 60 } },
  });
  if (response.status !== 202) throw new Error(await response.text());
  const { id } = RunView.parse(await response.json());
  const trainer = trainerObject(env, api.scope, id);
  const epoch = await registered(trainer);
  expect(await trainer.report(applied(0, epoch))).toMatchObject({ ok: true });
  const [old, later] = [0, 1].map((group) => [0, 1, 2].map((slot) => rolloutAt(id, group, slot)));
  if (old === undefined || later === undefined) throw new Error("two groups");
  await answerAll(old, 0);
  await answerAll(old, 1);
  await answerAll(later, 0);
  const [clean, across, again] = later;
  if (clean === undefined || across === undefined || again === undefined) throw new Error("three");
  await answerAll([clean], 1);
  await asked(model, across, 1);
  await asked(model, again, 1);
  await trained(trainer, epoch, 1);
  expect(await spansOf(id, trainer, 1)).toEqual(old.map((rollout) => [rollout, [0, 0], 0]));
  const changed = Date.now();
  expect(await trainer.report(applied(1, epoch))).toMatchObject({ ok: true });
  // It was sent under version 0 and answered under version 1: which of them sampled it is unknown.
  await answerAll([across], 1);
  // This call fails; it is repeated under version 1.
  await release(`${again}:1`, { kind: "status", status: 503 });
  await asked(model, again, 1, 2);
  await answerAll([again], 1);
  expect(await spansOf(id, trainer, 2)).toEqual([
    [clean, [0, 0], 0],
    [across, [0, 0], 0],
    [again, [0, 1], 1],
  ]);
  // The version of a turn depends on when its call was sent, and that time is stored.
  const left = await api.inRollout(across, (rollout) => rollout.read()?.turns[1]?.sent_at);
  expect(left).toBeLessThan(changed);
  expect(await trainer.register({ ...REGISTER, version: 0, reset_to: 0 })).toMatchObject({
    ok: true,
  });
  const snapshot = await trainer.snapshot({ acked_step: 0 });
  if (snapshot === null) throw new Error("no trainer");
  await runObject(env, api.scope, id).trainerChanged(snapshot);
  const groups = await api.inRun(id, (_, { storage }) =>
    storage.sql
      .exec("select reason, max_version from train_groups where group_index < 2 order by group_index")
      .toArray(),
  );
  expect(groups).toEqual([
    { reason: null, max_version: 0 },
    { reason: "version_reset", max_version: 1 },
  ]);
  await api.post(`/v1/runs/${id}/cancel`, {});
});

/** A trainer's object whose clock is set by hand, and what it reports as served. */
async function reporting() {
  const { run_id, trainer } = await openDelivery(api.scope);
  const batches = await Promise.all([1, 2].map((step) => storeBatch(api.scope, run_id, step)));
  await trainer.ready(
    batches.map(({ ready }) => ready),
    GOING,
  );
  const name = `org/${api.scope.orgId}/${api.scope.projectId}/${run_id}`;
  const at = (now: number) =>
    inside(env.TRAINER.getByName(name), TrainerObject, (object) => {
      object.now = () => now;
    });
  const spans = async () =>
    (await trainer.served())?.map(({ at, version, newest, taken_back }) => [at, version, newest, taken_back]);
  return { trainer, at, spans, name };
}

test("what is served follows from the reports, and is uncertain after a reset until its engine reports", async () => {
  const { trainer, at, spans } = await reporting();
  await at(100);
  const epoch = await registered(trainer);
  await trainer.report(applied(0, epoch));
  await at(200);
  await trained(trainer, epoch, 1);
  await at(300);
  await trainer.report({ ...applied(1, epoch), state: "pending" });
  await at(400);
  await trainer.report(applied(1, epoch));
  // A repeat has no effect.
  await at(500);
  await trainer.report(applied(1, epoch));
  await at(600);
  const back = await trainer.register({ ...REGISTER, version: 0, reset_to: 0 });
  await at(700);
  await trainer.report(applied(0, back.ok ? back.value.epoch : 0));
  expect(await spans()).toEqual([
    [0, 0, 1, 0],
    [200, 0, 2, 0],
    [400, 1, 2, 0],
    [600, 1, 1, 1],
    [700, 0, 1, 0],
  ]);
});

test("if a trainer returns without weights that an engine serves, the version of that engine's turns is uncertain", async () => {
  const { trainer, at, spans } = await reporting();
  await at(100);
  const epoch = await registered(trainer);
  await trained(trainer, epoch, 1, {});
  await at(200);
  await trainer.report(applied(1, epoch));
  await at(300);
  const back = await trainer.register({ ...REGISTER, version: 0 });
  await at(400);
  await trainer.report(applied(0, back.ok ? back.value.epoch : 0));
  expect(await spans()).toEqual([
    [0, 0, 1, 0],
    [200, 1, 1, 0],
    [300, 1, 1, 1],
    [400, 0, 1, 0],
  ]);
});

test("if no replica ever reports, the published version counts as served, and of several the oldest", async () => {
  const { trainer, at, spans } = await reporting();
  await at(100);
  const epoch = await registered(trainer);
  await trained(trainer, epoch, 1);
  await at(200);
  await trainer.report(applied(0, epoch));
  await trainer.report({ ...applied(0, epoch), replica: "gpu-1" });
  await at(300);
  await trainer.report(applied(1, epoch));
  await at(400);
  await trainer.report({ ...applied(1, epoch), replica: "gpu-1" });
  expect(await spans()).toEqual([
    [0, 0, 1, 0],
    [100, 1, 2, 0],
    [200, 0, 2, 0],
    [400, 1, 2, 0],
  ]);
});

test("an object that was never created answers null for what was served", async () => {
  expect(await trainerObject(env, api.scope, "run_nobody").served()).toBeNull();
});
