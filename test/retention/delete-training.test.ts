/** A training run is deleted: its trainer is refused immediately, and its evals are deleted with it. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../../src/contract/messages.ts";
import { RunView } from "../../src/contract/run.ts";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../src/core/entry.ts";
import { trainerObject } from "../../src/kernel/kit/names.ts";
import { trainerSpecOf } from "../../src/kernel/messages/training-wire.ts";
import type { RunHead } from "../../src/kernel/run/schema.ts";
import { done, expectGone, keysUnder, remove } from "../kernel/deleting.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { registerOnce } from "../kernel/registered.ts";
import { script } from "../kernel/script.ts";

const rows = Array.from({ length: 40 }, (_, at) => ({ question: `Is ${at} odd?` }));
const yes = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), rows),
      rubric: { rewards: { yes: ({ completion }) => (textOf(completion.at(-1)) === "yes" ? 1 : 0) } },
    }),
});
registerOnce({ ...yes, id: "deleted-training", version: "1.0.0", digest: "sha256:deleted-training" });

const REQUEST = {
  ...{ kind: "training", environment: "deleted-training", group_size: 4, max_concurrent: 8 },
  ...{ max_steps: 3, batch_size: { rollouts: 8 }, trainer: { encoding: "jsonl" } },
  eval: { every: 1, num_examples: 2 },
};

async function begun(api: TestApi): Promise<RunView> {
  const slots = ["yes", "no", "no", "yes"].map((content) => ({ content, extra: { weight_version: 0 } }));
  const model = script(["no"], undefined, { slots, tokens: true });
  const reply = await api.post("/v1/runs", { ...REQUEST, model, endpoint: { base_url: env.MODEL_URL } });
  expect(reply.status, await reply.clone().text()).toBe(202);
  return RunView.parse(await reply.json());
}

test("a training run is deleted with its trainer, its batches and its evals", async () => {
  const api = await openPlatform();
  const { id } = await begun(api);
  const evals = async () => (await api.run(id)).training?.evals.flatMap(({ run_id }) => run_id ?? []) ?? [];
  await expect.poll(evals).toHaveLength(1);
  await expect.poll(() => keysUnder(`org/${api.scope.orgId}/`)).not.toEqual([]);
  const [evalId = ""] = await evals();
  await api.ended(evalId);
  const trainer = trainerObject(env, api.scope, id);
  await expect.poll(() => trainer.snapshot({ acked_step: 0 })).not.toBeNull();
  const { spec } =
    (await env.DB.prepare("select spec from runs where id = ?").bind(id).first<{ spec: string }>()) ?? {};
  const { id: job } = await remove(api, id);
  const tokens = "select count(*) as n from trainer_tokens where run_id = ? and expires_at is null";
  expect(await env.DB.prepare(tokens).bind(id).first("n")).toBe(0);
  const settledAt = () => api.inRun(id, (_, { storage }) => storage.kv.get<RunHead>("head")?.settled_at);
  await expect.poll(settledAt).toBeTypeOf("number");
  const receipt = await done(api, job);
  expect(receipt.counts).toMatchObject({ runs: 2 });
  for (const gone of [id, evalId]) await expectGone(api, gone);
  expect((await api.ask(`/v1/runs/${id}/weight-versions`)).status).toBe(404);
  // A late creation starts nothing.
  const made = trainerSpecOf(JSON.parse(spec ?? "{}"));
  if (made !== null) await trainer.create(made);
  expect(await trainer.snapshot({ acked_step: 0 })).toBeNull();
  expect(await keysUnder(`org/${api.scope.orgId}/`)).toEqual([]);
});
