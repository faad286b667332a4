/** What is refused of a training run before anything is stored, and what its creator gets. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { CreatedRun } from "../../../../src/contract/run.ts";
import { dataset, defineEnvironment, EnvGroup, SingleTurnEnv } from "../../../../src/core/entry.ts";
import type { EngineKind } from "../../../fakes/probe-reply.ts";
import { openPlatform, type TestApi } from "../../platform.ts";
import { registerOnce, registerTestEnvironments } from "../../registered.ts";
import { script } from "../../script.ts";
import { jsonLines, uploaded } from "../../upload.ts";

const Task = z.object({ question: z.string() });
const rubric = { rewards: { one: () => 1 } };
/** Four rows; or endless rows with as many different tasks as `kinds` says. */
const numbers = defineEnvironment({
  args: z.strictObject({ kinds: z.int().nullable().default(null) }),
  build: ({ kinds }) =>
    new SingleTurnEnv({
      dataset: dataset(
        Task,
        kinds === null
          ? Array.from({ length: 4 }, (_, at) => ({ question: `${at}?` }))
          : (index) => ({ question: `${index % kinds}?` }),
      ),
      rubric,
    }),
});
/** Its rows are sent with the run. */
const bare = defineEnvironment({
  args: z.strictObject({}),
  build: () => new SingleTurnEnv({ dataset: dataset(Task, "uploaded"), rubric }),
});
/** Finite rows, and endless ones for evals. */
const endless = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, [{ question: "?" }]),
      evalDataset: dataset(Task, (index) => ({ question: `${index}?` })),
      rubric,
    }),
});
const named = (name: string) =>
  defineEnvironment({
    args: z.strictObject({}),
    build: () =>
      new EnvGroup({
        [name]: new SingleTurnEnv({ dataset: dataset(Task, [{ question: "?" }]), rubric }),
      }),
  });
const greedy = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, [{ question: "?" }]),
      sampling: { temperature: 0 },
      rubric,
    }),
});
const member = (rows: number) =>
  new SingleTurnEnv({
    dataset: dataset(Task, { length: rows, row: (at) => ({ question: `${rows} ${at}?` }) }),
    rubric,
  });
const pair = defineEnvironment({
  args: z.strictObject({ empty: z.boolean().default(false) }),
  build: ({ empty }) => new EnvGroup({ one: member(empty ? 0 : 2), "team/two": member(3) }),
});
const bringing = defineEnvironment({
  args: z.strictObject({}),
  build: () => {
    const brings = new SingleTurnEnv({ dataset: dataset(Task, "uploaded"), rubric });
    return new EnvGroup({ one: brings, two: brings });
  },
});
for (const [id, { args, needs, load }] of Object.entries({
  ...{ pair, bringing },
  ...{ numbers, greedy, bare, endless },
  ...{ "group-all": named("all"), "group-agg": named("agg") },
})) {
  registerOnce({ id: `asked-${id}`, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
}
registerTestEnvironments();

const ASKED = { kind: "training", environment: "asked-numbers", model: "m", max_steps: 1 };
const NONE = { weight: 0 };
const NO_POOL = {
  ...{ name: "difficulty", hard: { ...NONE, up_to: 0.2 }, normal: { ...NONE, up_to: 0.7 } },
  ...{ easy: NONE, unseen: NONE },
};
const HARD_ABOVE_NORMAL = { name: "difficulty", hard: { up_to: 0.9, weight: 1 } };
const BARE = { environment: "asked-bare", dataset: [{ question: "a" }, { question: "b" }] };
const PAIR = { environment: "asked-pair" };
const BRINGING = { environment: "asked-bringing", dataset: [{ question: "a", info: { env_id: "one" } }] };
const TWICE = { every: 1, num_examples: 1 };
const SMALL = { max_concurrent: 1, group_size: 2, batch_size: { rollouts: 2 } };

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const post = (request: object, headers: Record<string, string> = {}) =>
  api.post("/v1/runs", { endpoint: { base_url: env.MODEL_URL }, ...ASKED, ...request }, headers);

test.each([
  ["a kind that is none", { kind: "train" }, "kind"],
  ["a field of evals", { num_examples: 3 }, "num_examples"],
  ["an estimator that is none", { advantage: { name: "grpo" } }, "advantage.name"],
  ["a penalty", { sampling: { presence_penalty: 0.5 } }, "sampling.presence_penalty"],
  ["no parallel calls", { sampling: { parallel_tool_calls: false } }, "sampling.parallel_tool_calls"],
  [
    "a repeated word made rare",
    { sampling: { extra_body: { repetition_penalty: 1.1 } } },
    "sampling.extra_body.repetition_penalty",
  ],
  [
    "a reply held to a form",
    { sampling: { extra_body: { structured_outputs: { regex: "a" } } } },
    "sampling.extra_body.structured_outputs",
  ],
  ["groups no member of which may fail", { group_size: 2, min_group_size: 3 }, "min_group_size"],
  ["groups of one against their mean", { group_size: 1 }, "group_size"],
  ["sampling that never differs", { sampling: { temperature: 0 } }, "sampling.temperature"],
  ["an environment that asks for such", { environment: "asked-greedy" }, "sampling.temperature"],
  ["pools that overlap", { curriculum: HARD_ABOVE_NORMAL }, "curriculum.hard.up_to"],
  ["pools nobody draws from", { curriculum: NO_POOL }, "curriculum"],
  ["pushes to nowhere", { trainer: { delivery: "push" } }, "trainer.url"],
  ["an eval of nothing known", { eval: { every: 1, environment: "nope" } }, "eval.environment"],
  ["an eval without its judge", { eval: { every: 1, environment: "judged" } }, "eval.environment"],
  ["every row held out", { holdout: 4 }, "holdout"],
  ["more held out than there are rows", { ...BARE, holdout: 3 }, "holdout"],
  ["every row that came with the run held out", { ...BARE, holdout: 2 }, "holdout"],
  [
    "an eval of more of the run's rows than are held out",
    { ...BARE, holdout: 1, eval: { every: 1, num_examples: 2 } },
    "eval.num_examples",
  ],
  [
    "an eval of the run's rows none of which is held out",
    { ...BARE, eval: { every: 1, num_examples: 1 } },
    "eval.num_examples",
  ],
  [
    "an eval of another environment that has no rows",
    { eval: { every: 1, environment: "asked-bare" } },
    "eval.environment",
  ],
  ["an order of evals without end", { environment: "asked-endless", shuffle: true, holdout: 1 }, "shuffle"],
  ["a member whose name trainers reserve", { environment: "asked-group-all" }, "environment"],
  ["a member called as the series of all", { environment: "asked-group-agg" }, "environment"],
  ["every task of rows without end held out", { holdout: 16, environment_args: { kinds: 8 } }, "holdout"],
  ["members of an environment that is no group", { members: { a: { ratio: 1 } } }, "members"],
  ["a member that the group does not have", { ...PAIR, members: { three: {} } }, "members.three"],
  ["a ratio of one member only", { ...PAIR, members: { one: { ratio: 1 } } }, 'members["team/two"].ratio'],
  ["a ratio of 0", { ...PAIR, members: { one: { ratio: 0 } } }, "members.one.ratio"],
  ["a member's group of one", { ...PAIR, members: { one: { group_size: 1 } } }, "members.one.group_size"],
  [
    "a member's group that is smaller than the smallest one trained on",
    { ...PAIR, min_group_size: 3, members: { one: { group_size: 2 } } },
    "min_group_size",
  ],
  [
    "a member without advantages in a run with them",
    { ...PAIR, members: { one: { advantage: { name: "none" } } } },
    "members.one.advantage",
  ],
  [
    "a ratio for rows that come with the run",
    { ...BRINGING, members: { one: { ratio: 1 }, two: { ratio: 1 } } },
    "members.one.ratio",
  ],
  [
    "a size for rows that come with the run",
    { ...BRINGING, members: { two: { group_size: 4 } } },
    "members.two.group_size",
  ],
  [
    "a member without rows",
    { ...PAIR, environment_args: { empty: true }, members: { one: { group_size: 4 } } },
    "environment",
  ],
  ["every row of a member held out", { ...PAIR, holdout: 2, members: { one: { group_size: 4 } } }, "holdout"],
  ["one eval beside several", { eval: TWICE, evals: [TWICE] }, "evals"],
  ["no evals in a list of them", { evals: [] }, "evals"],
  [
    "two evals of one name",
    {
      evals: [
        { ...TWICE, name: "a" },
        { ...TWICE, name: "a" },
      ],
    },
    "evals[1].name",
  ],
  ["two evals of one environment without names", { evals: [TWICE, TWICE] }, "evals[1].name"],
  [
    "an eval of nothing known among several",
    { evals: [TWICE, { ...TWICE, environment: "nope" }] },
    "evals[1].environment",
  ],
  ["an eval with an unknown dataset", { evals: [{ ...TWICE, dataset: "nope" }] }, "evals[0].dataset"],
])("%s is refused by its field", async (_what, request, param) => {
  const reply = await post(request);
  const { error } = await reply.json<{ error: { param: string; message: string } }>();
  expect([400, 404]).toContain(reply.status);
  expect(error.param).toBe(param);
  expect(error.message).not.toMatch(/invalid|union|discriminator/i);
});

test("an unknown member is refused with the names of the known ones", async () => {
  const reply = await post({ ...PAIR, members: { three: {} } });
  const { error } = await reply.json<{ error: { message: string } }>();
  expect(error.message).toBe("members.three: is not a member of asked-pair: use one, team/two");
});

const engine = (kind: EngineKind) => script(["no"], undefined, { tokens: true, engine: kind });
const ENGINES: [EngineKind, string][] = [
  ["no_ids", "no token ids"],
  ["short", "different numbers of logprobs"],
  ["raw", "--logprobs-mode processed_logprobs"],
  ["penalties_ignored", "--generation-config vllm"],
];

test.each(ENGINES)("an engine that is %s is refused, with a text that says what to do", async (kind, words) => {
  const reply = await post({ model: engine(kind) });
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({
    error: {
      code: "invalid_request",
      param: "endpoint",
      message: expect.stringContaining(words),
    },
  });
});

test("shuffled rows spread over a large dataset are held out as far as they can be read", async () => {
  const rows = Array.from({ length: 66_000 }, (_, at) => ({ question: `${at}` }));
  const { id } = await uploaded(api, jsonLines(rows));
  const asked = { ...SMALL, environment: "asked-bare", dataset: id, shuffle: true };
  const reply = await post({ ...asked, holdout: 3000 });
  expect(reply.status).toBe(400);
  const { error } = await reply.json<{ error: { param: string; message: string } }>();
  expect(error.param).toBe("holdout");
  expect(error.message).toMatch(/3000 shuffled rows are in 25[78] blocks .* hold out 256/);
});

test("token and push secret are shown once: a replay and a read do not have them any more", async () => {
  const trainer = { delivery: "push", url: "https://trainer.example/batches" };
  const key = { "idempotency-key": "once" };
  const request = { ...SMALL, trainer, model: script(["no"], undefined, { tokens: true }) };
  const created = CreatedRun.parse(await (await post(request, key)).json());
  expect(created).toMatchObject({
    ...{ kind: "training", num_examples: 4, rollouts_per_example: 2 },
    training: { step: 1, max_steps: 1, min_group_size: 2, policy_version: 0, trainer: null },
    trainer: {
      token: expect.stringMatching(/^rct_/),
      push_secret: expect.stringMatching(/^whsec_/),
    },
  });
  const again = await post(request, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toMatchObject({ id: created.id, trainer: null });
  expect(JSON.stringify(await api.run(created.id))).not.toContain(created.trainer?.token);
  const listed = await (await api.ask("/v1/runs?kind=training")).json();
  expect(listed).toMatchObject({ data: [{ id: created.id, kind: "training", training: null }] });
  const series = await (await api.ask(`/v1/runs/${created.id}/metrics?after_step=0`)).json();
  expect(series).toMatchObject({ object: "list", data: [], has_more: false });
  await api.post(`/v1/runs/${created.id}/cancel`, {});
});

test("an endpoint is probed again for each run, and the last result is used while it is away", async () => {
  const named = async (name: string, model: string, more: object = {}) => {
    const endpoint = { name, base_url: env.MODEL_URL, model, ...more };
    expect((await api.post("/v1/endpoints", endpoint)).status).toBe(201);
  };
  await named("was-exact", engine("exact"));
  // Restarted with other flags: the earlier result does not count.
  expect((await post({ endpoint: "was-exact", model: engine("raw") })).status).toBe(400);
  // The scripted model fails if its name has no script.
  const away = await post({ endpoint: "was-exact", ...SMALL });
  expect(away.status).toBe(202);
  await api.post(`/v1/runs/${CreatedRun.parse(await away.json()).id}/cancel`, {});
  await named("never-seen", engine("exact"), { probe: false });
  const unseen = await post({ endpoint: "never-seen" });
  expect(unseen.status).toBe(400);
  expect(await unseen.json()).toMatchObject({
    error: {
      param: "endpoint",
      message: expect.stringMatching(/could not be checked.*start the server/),
    },
  });
});
