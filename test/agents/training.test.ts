/** A training run whose rollouts an agent plays: branches become samples, with the tokens that were sampled. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunView } from "../../src/contract/run.ts";
import { trainerObject } from "../../src/kernel/kit/names.ts";
import { openPlatform, requestsOf, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { lease, type Played } from "./agent.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

async function begin(of: TestApi, model: string): Promise<string> {
  const response = await of.post("/v1/runs", {
    ...{ kind: "training", environment: "agent", agent: { name: "learner" }, dataset: [{ question: "?" }], model },
    ...{ endpoint: { base_url: env.MODEL_URL }, group_size: 2, batch_size: { rollouts: 2 }, max_concurrent: 2 },
    ...{ max_steps: 1, filters: { zero_variance: "keep" }, trainer: { encoding: "jsonl" } },
  });
  if (response.status !== 202) throw new Error(await response.text());
  return RunView.parse(await response.json()).id;
}

/** A training run with a trainer, and its two rollouts. */
async function openTraining(of: TestApi, model: string) {
  const id = await begin(of, model);
  const trainer = trainerObject(env, of.scope, id);
  const registered = await trainer.register({ trainer_id: "t", kind: "by hand", last_acked: null });
  if (!registered.ok) throw new Error(JSON.stringify(registered.refusal));
  const rollouts: Played[] = [];
  while (rollouts.length < 2) rollouts.push(...(await lease(of, "learner", 2)));
  return { id, trainer, epoch: registered.value.epoch, rollouts };
}

async function batchOf(trainer: ReturnType<typeof trainerObject>, epoch: number) {
  const leased = await trainer.lease({ trainer_id: "t", epoch, want_step: 1, max_wait_s: 20 });
  if (!leased.ok || !("manifest" in leased.value)) throw new Error(JSON.stringify(leased));
  return leased.value;
}

/** Two turns of one conversation, and between them one of a sub-agent. */
async function playBranches(rollout: Played, reward: number): Promise<void> {
  await rollout.chat({ messages: [user("main")], temperature: 0, tool_choice: "required", seed: 3 });
  await rollout.say(user("sub"));
  await rollout.say(user("main"), assistant("one"), user("more"));
  await rollout.finish({ rewards: { solved: reward } });
}

test("a call that its agent excludes from training is in no sample, and a repeat of it stays excluded", async () => {
  const of = await openPlatform();
  const { trainer, epoch, rollouts } = await openTraining(of, script(["one", "two"], undefined, { tokens: true }));
  const not = { "x-rollcall-train": "false", "idempotency-key": "simulator" };
  for (const [at, rollout] of rollouts.entries()) {
    await rollout.say(user("main"));
    const excluded = await rollout.chat({ messages: [user("you are the user")] }, not);
    const repeated = await rollout.chat({ messages: [user("you are the user")] }, { "idempotency-key": "simulator" });
    expect(await repeated.text()).toBe(await excluded.text());
    await rollout.say(user("main"), assistant("one"), user("more"));
    await rollout.finish({ rewards: { solved: at } });
  }
  const { manifest } = await batchOf(trainer, epoch);
  expect(manifest).toMatchObject({ rollouts: 2, samples: 2 });
  const [{ rollout_id = "" } = {}] = rollouts;
  const view = await of.rollout(rollout_id);
  expect(view.turns.map(({ trained }) => trained)).toEqual([undefined, false, undefined]);
  const masks = [0, 1, 2].map(async (turn) => {
    const page = await of.ask(`/v1/rollouts/${rollout_id}/turns/${turn}/tokens`);
    return (await page.json<{ mask: number }>()).mask;
  });
  expect(await Promise.all(masks)).toEqual([1, 0, 1]);
  expect(view.usage.total_tokens).toBe(view.turns.reduce((sum, { usage }) => sum + (usage?.total_tokens ?? 0), 0));
});

test.each([
  ["chat/completions", { messages: [user("a")] }],
  ["responses", { input: "a" }],
  ["messages", { messages: [user("a")], max_tokens: 9 }],
])("another value of the header that excludes a call is refused by name: %s", async (path, body) => {
  const of = await openPlatform();
  const model = script(["one"]);
  await of.start({ environment: "agent", agent: { name: "headers" }, dataset: [{ question: "?" }], model });
  const [rollout] = await lease(of, "headers");
  if (rollout === undefined) throw new Error("no rollout came");
  const response = await rollout.send(`${rollout.base_url}/${path}`, { model, ...body }, { "x-rollcall-train": "no" });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("X-Rollcall-Train: must be")]);
});

test("each branch of an agent's calls is one sample, and the run's sampling replaces the agent's", async () => {
  const of = await openPlatform();
  const model = script(["one", "two"], undefined, { tokens: true });
  const { id, trainer, epoch, rollouts } = await openTraining(of, model);
  for (const [at, rollout] of rollouts.entries()) await playBranches(rollout, at);
  const { lease: held, manifest } = await batchOf(trainer, epoch);
  expect(manifest).toMatchObject({ rollouts: 2, samples: 4 });
  const done = { token: held.token, epoch, batch_id: manifest.batch_id, sha256: manifest.sha256, produced_version: 1 };
  expect(await trainer.ack(held.id, { ...done, metrics: {} })).toMatchObject({ ok: true });
  for (const state of ["published", "applied"] as const) {
    await trainer.report({ version: 1, state, epoch, ...(state === "applied" && { replica: "r" }) });
  }
  const run = await of.ended(id);
  expect(run).toMatchObject({ status: "completed", training: { samples: { clean: 2, forked: 2, realigned: 0 } } });
  const [call] = (await requestsOf(model)).filter(({ idempotency_key: key }) => key.startsWith("ro_"));
  expect(call?.sampling).toMatchObject({ temperature: 1, top_p: 1, return_token_ids: true, cache_salt: `${id}.0.0` });
  expect(call?.sampling).not.toHaveProperty("tool_choice");
});
