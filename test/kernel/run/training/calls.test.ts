/** What calls of training runs send to the engine: tools, sampling, cache salts. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { RunView } from "../../../../src/contract/run.ts";
import { dataset, defineEnvironment, ToolEnv, tool } from "../../../../src/core/entry.ts";
import { trainerObject } from "../../../../src/kernel/kit/names.ts";
import type { TrainerRpc } from "../../../../src/kernel/messages/training-wire.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";
import { script } from "../../script.ts";

const Task = z.object({ question: z.string(), info: z.unknown().optional() });
const rigid = { name: "rigid", description: "?", parameters: { type: "object" }, strict: true };
const info = { tool_defs: [rigid] };

/** One tool, with a parameter named strict; rows may define another tool. */
const tooled = defineEnvironment({
  args: z.strictObject({ brought: z.boolean().default(false) }),
  build: ({ brought }) =>
    new ToolEnv({
      dataset: dataset(Task, [{ question: "?", ...(brought && { info }) }]),
      tools: [
        tool({
          name: "hold",
          description: "Holds.",
          parameters: z.object({ strict: z.boolean() }),
          run: () => "held",
        }),
      ],
      rubric: { rewards: { one: () => 1 } },
    }),
});
const { args, needs, load } = tooled;
registerOnce({ id: "calls-tooled", version: "1.0.0", digest: "sha256:tooled", args, needs, load });

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const held = { tool_calls: [{ id: "c", name: "hold", arguments: { strict: true } }] };
const modelOf = () => script([held, "Done."], undefined, { tokens: true });

interface Begun {
  readonly id: string;
  readonly trainer: TrainerRpc;
  readonly epoch: number;
}

async function begin(model: string, request: object = {}): Promise<Begun> {
  const asked = {
    ...{
      kind: "training",
      environment: "calls-tooled",
      model,
      endpoint: { base_url: env.MODEL_URL },
    },
    ...{
      group_size: 2,
      batch_size: { rollouts: 2 },
      max_concurrent: 2,
      max_steps: 2,
      max_off_policy_steps: 0,
    },
    filters: { zero_variance: "keep" },
  };
  const response = await api.post("/v1/runs", { ...asked, ...request });
  if (response.status !== 202) throw new Error(await response.text());
  const { id } = RunView.parse(await response.json());
  const trainer = trainerObject(env, api.scope, id);
  return { id, trainer, epoch: await registered(trainer, {}) };
}

async function registered(trainer: TrainerRpc, more: object): Promise<number> {
  const asked = { trainer_id: "t", kind: "by hand", last_acked: null };
  const answer = await trainer.register({ ...asked, ...more });
  if (!answer.ok) throw new Error(JSON.stringify(answer.refusal));
  return answer.value.epoch;
}

async function trainStep(trainer: TrainerRpc, epoch: number, step: number): Promise<void> {
  const asked = { trainer_id: "t", epoch, want_step: step, max_wait_s: 20 };
  const answer = await trainer.lease(asked);
  if (!answer.ok || !("manifest" in answer.value)) throw new Error(JSON.stringify(answer));
  const { lease, manifest } = answer.value;
  const { batch_id, sha256 } = manifest;
  const done = { token: lease.token, epoch, batch_id, sha256, produced_version: step };
  const acked = await trainer.ack(lease.id, { ...done, metrics: {} });
  if (!acked.ok) throw new Error(JSON.stringify(acked.refusal));
  await applied(trainer, epoch, step);
}

async function applied(trainer: TrainerRpc, epoch: number, version: number): Promise<void> {
  for (const state of ["published", "applied"] as const) {
    await trainer.report({ version, state, epoch, ...(state === "applied" && { replica: "r" }) });
  }
}

/** Calls of rollouts in the order of arrival, once there are this many. A probe has no key. */
async function callsOf(model: string, atLeast = 0) {
  for (let seen = 0; ; ) {
    const requests = await requestsOf(model, seen);
    const calls = requests.filter(({ idempotency_key: key }) => key.startsWith("ro_"));
    if (calls.length >= atLeast) return calls;
    seen = requests.length + 1;
  }
}

const saltsOf = async (model: string) => (await callsOf(model)).map(({ sampling }) => String(sampling["cache_salt"]));

test("no tool is strict, wherever it comes from, and the distribution is that of the weights", async () => {
  for (const brought of [false, true]) {
    const model = modelOf();
    const run = await begin(model, { environment_args: { brought }, max_steps: 1 });
    await trainStep(run.trainer, run.epoch, 1);
    await api.ended(run.id);
    const calls = await callsOf(model);
    expect(calls.length).toBeGreaterThanOrEqual(4);
    for (const { tools, sampling } of calls) {
      expect(tools.map(({ function: { name } }) => name)).toEqual([brought ? "rigid" : "hold"]);
      expect(tools.filter(({ function: asked }) => "strict" in asked)).toEqual([]);
      expect(sampling).toEqual({
        ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, logprobs: true },
        ...{ presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 },
        ...{ return_token_ids: true, cache_salt: `${run.id}.0.0` },
      });
    }
    if (brought) continue;
    // The tool's schema is not changed.
    const [first] = calls[0]?.tools ?? [];
    expect(first?.function.parameters).toHaveProperty("properties.strict.type", "boolean");
    expect(first?.function.parameters).toMatchObject({ additionalProperties: false });
  }
});

test("an eval requests strict tools", async () => {
  const model = modelOf();
  await api.finish({ environment: "calls-tooled", model, num_examples: 1 });
  const calls = await callsOf(model);
  expect(calls.map(({ tools }) => tools[0]?.function.strict)).toEqual([true, true]);
});

test("every turn has the salt of its rollout's version, each version has its own, and so does the same number after a reset", async () => {
  const model = modelOf();
  const run = await begin(model);
  await trainStep(run.trainer, run.epoch, 1);
  await callsOf(model, 8);
  const before = new Set(await saltsOf(model));
  expect(before).toEqual(new Set([`${run.id}.0.0`, `${run.id}.0.1`]));
  const epoch = await registered(run.trainer, { version: 0, reset_to: 0 });
  await run.trainer.report({ version: 0, state: "applied", epoch, replica: "r" });
  await trainStep(run.trainer, epoch, 1);
  await trainStep(run.trainer, epoch, 2);
  expect((await api.ended(run.id)).status).toBe("completed");
  const calls = await callsOf(model);
  const after = new Set(calls.map(({ sampling }) => sampling["cache_salt"]));
  expect(after).toEqual(new Set([...before, `${run.id}.1.1`]));
  const byRollout = new Map<string, Set<unknown>>();
  for (const { idempotency_key, sampling } of calls) {
    const [rollout = ""] = idempotency_key.split(":");
    const salts = byRollout.get(rollout) ?? new Set();
    byRollout.set(rollout, salts.add(sampling["cache_salt"]));
  }
  expect([...byRollout.values()].map(({ size }) => size)).not.toContain(2);
});

test("another run of the same environment and version shares no salt, and an eval of a run's weights has theirs", async () => {
  const model = modelOf();
  const other = await begin(model, { max_steps: 1 });
  const run = await begin(model, { max_steps: 1, eval: { every: 1, num_examples: 1 } });
  for (const { trainer, epoch } of [other, run]) await trainStep(trainer, epoch, 1);
  for (const { id } of [other, run]) await api.ended(id);
  let { training } = await api.run(run.id);
  while (training?.evals.length !== 2) {
    // The run's own alarms begin the evals.
    await scheduler.wait(50);
    training = (await api.run(run.id)).training;
  }
  const evals = training.evals.map(({ run_id }) => run_id);
  for (const id of evals) await api.ended(id);
  const salts = async (id: string) => {
    const own = rolloutAt(id).split("_")[1] ?? "";
    const calls = (await callsOf(model)).filter(({ idempotency_key: key }) => key.includes(own));
    return [...new Set(calls.map(({ sampling }) => sampling["cache_salt"]))];
  };
  expect(await salts(other.id)).toEqual([`${other.id}.0.0`]);
  expect(await salts(run.id)).toEqual([`${run.id}.0.0`]);
  expect(await Promise.all(evals.map(salts))).toEqual([[`${run.id}.0.0`], [`${run.id}.0.1`]]);
});
