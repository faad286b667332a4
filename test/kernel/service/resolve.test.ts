/** One step resolves every kind of run: a fault gives the same error through every interface. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { RunRequest } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../src/core/entry.ts";
import type { Refusal } from "../../../src/kernel/messages/refusal.ts";
import { acceptRun } from "../../../src/kernel/service/accept-run.ts";
import { registerMarking } from "../marking.ts";
import { openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce, registerTestEnvironments } from "../registered.ts";
import { GUESSES } from "../rows.ts";
import { script } from "../script.ts";

/** Takes one argument, and builds with any number except 13. */
const choosy = defineEnvironment({
  args: z.strictObject({ size: z.int().max(100).default(1) }),
  build: ({ size }) => {
    if (size === 13) throw new Error("13 is unlucky");
    const rows = dataset(z.object({ question: z.string() }), [{ question: "?" }]);
    return new SingleTurnEnv({ dataset: rows, rubric: { rewards: { one: () => 1 } } });
  },
});

let api: TestApi;
let ended: { readonly run: string; readonly rollout: string };
beforeAll(async () => {
  api = await openPlatform();
  registerMarking();
  registerTestEnvironments();
  registerOnce({ id: "choosy", version: "1.0.0", digest: "sha256:choosy", ...choosy });
  const request = { environment: "guess-number", num_examples: 1, seed: 5, model: script([...GUESSES]) };
  const { id } = await api.finish(request);
  ended = { run: id, rollout: rolloutAt(id) };
});

type Said = Pick<Refusal, "code" | "message" | "param">;

async function refused(path: string, body: object): Promise<Said> {
  const reply = await api.post(path, body);
  const { error } = await reply.json<{ error?: Said }>();
  if (error === undefined) throw new Error(`${path} was accepted`);
  const { code, message, param } = error;
  return { code, message, param };
}

/** Each is requested in its own way: a run, its preview, and an eval as its training run starts it. */
const ways = {
  run: (body: object) => refused("/v1/runs", asked(body)),
  preview: (body: object) => refused("/v1/runs/preview", asked(body)),
  "begun eval": async (body: object) => {
    const begun = { byRun: true, weights: { weights_of: ended.run }, idempotencyKey: null, requestHash: "" } as const;
    const made = await acceptRun(env, api.scope, RunRequest.parse(asked(body)), { ...begun, now: Date.now() });
    if (made.ok) throw new Error("it was accepted");
    const { code, message, param } = made.error;
    return { code, message, param };
  },
  rescore: (body: object) => refused(`/v1/runs/${ended.run}/rescore`, body),
  fork: (body: object) => refused(`/v1/rollouts/${ended.rollout}/fork`, { turn: 0, ...body }),
  /** The errors of a training run about its evals: about the fields of `eval`. */
  "asked eval": (body: object) => refused("/v1/runs", training({ eval: { every: 1, ...body } })),
};

function asked(body: object): object {
  const endpoint = "fleet" in body ? {} : { endpoint: { base_url: env.MODEL_URL } };
  return { environment: "guess-number", num_examples: 1, model: "m", ...endpoint, ...body };
}

function training(body: object): object {
  const endpoint = { base_url: env.MODEL_URL };
  return { kind: "training", environment: "choosy", group_size: 2, max_steps: 1, model: "m", endpoint, ...body };
}

const ALL = ["run", "preview", "begun eval"] as const;
const NOBODY = { endpoint: "nobody", model: "m" };
const SOMEBODY = { endpoint: { base_url: env.MODEL_URL }, model: "m" };
const CAPPED = { max_cost_micros: 5 };

test.each([
  {
    what: "an environment that is not there",
    body: { environment: "nope" },
    by: [...ALL, "rescore", "asked eval"] as const,
    said: { code: "not_found", message: "no environment nope", param: "environment" },
  },
  {
    what: "an argument that the environment refuses",
    body: { environment: "choosy", environment_args: { size: 101 } },
    by: [...ALL, "rescore", "asked eval"] as const,
    said: { code: "invalid_request", message: expect.stringContaining("100"), param: "environment_args.size" },
  },
  {
    what: "an environment that cannot be built",
    body: { environment: "choosy", environment_args: { size: 13 } },
    by: [...ALL, "rescore", "asked eval"] as const,
    said: { code: "invalid_request", message: expect.stringContaining("unlucky"), param: "environment_args" },
  },
  {
    what: "an environment whose secret is not set",
    body: { environment: "keyed" },
    by: [...ALL, "rescore", "asked eval"] as const,
    said: { code: "unmet_need", message: expect.stringContaining("SEARCH_KEY"), param: "environment" },
  },
  {
    what: "a judge that the rubric does not know",
    body: { judges: { nobody: SOMEBODY } },
    by: [...ALL, "rescore"] as const,
    said: {
      code: "unknown_field",
      message: "guess-number has no judge called nobody: it has none",
      param: "judges.nobody",
    },
  },
  {
    what: "a judge that is missing",
    body: { environment: "judged" },
    by: [...ALL, "rescore"] as const,
    said: { code: "missing_judge", message: expect.stringContaining("default"), param: "judges.default" },
  },
  {
    what: "a judge on an endpoint that is not there",
    body: { environment: "judged", judges: { default: NOBODY } },
    by: [...ALL, "rescore"] as const,
    said: { code: "not_found", message: "no endpoint nobody", param: "judges.default.endpoint" },
  },
  {
    what: "an endpoint that is not there",
    body: { endpoint: "nobody" },
    by: [...ALL, "fork"] as const,
    said: { code: "not_found", message: "no endpoint nobody", param: "endpoint" },
  },
  {
    what: "a fleet that is not there",
    body: { fleet: "nobody" },
    by: [...ALL, "fork"] as const,
    said: { code: "not_found", message: "no fleet nobody", param: "fleet" },
  },
  {
    what: "a cap without a bound for what a call takes",
    body: CAPPED,
    by: ALL,
    said: { code: "max_tokens_required", message: expect.any(String), param: "sampling.max_tokens" },
  },
  {
    what: "a cap without prices",
    body: { ...CAPPED, sampling: { max_tokens: 8 } },
    by: ALL,
    said: { code: "prices_required", message: expect.any(String), param: "endpoint" },
  },
])("$what is refused with the same error by each interface", async ({ body, by, said }) => {
  const first = await ways[by[0]](body);
  expect(first).toEqual(said);
  for (const way of by.slice(1)) {
    const param = way === "asked eval" ? `eval.${said.param}` : said.param;
    expect({ way, ...(await ways[way](body)) }).toEqual({ way, ...first, param });
  }
});

test("a judge that an eval's environment needs is missing in its training run, and the error names the eval's environment", async () => {
  const run = await ways.run({ environment: "judged" });
  const said = await ways["asked eval"]({ environment: "judged" });
  expect(said).toEqual({ ...run, param: "eval.environment" });
});

test("a group too large to be scored as one is refused, naming the field that each interface has for it", async () => {
  const model = script(["1"]);
  const request = { environment: "marked", dataset: [{ question: "a" }], rollouts_per_example: 401, model };
  const message = "ranked scores whole groups, of at most 400 rollouts";
  const run = await ways.run({ ...request, environment: "ranked" });
  expect(run).toEqual({ code: "too_large", message, param: "rollouts_per_example" });
  expect(await ways.preview({ ...request, environment: "ranked" })).toEqual(run);
  expect(await ways["begun eval"]({ ...request, environment: "ranked" })).toEqual(run);
  const { id } = await api.finish({ ...request, environment: "ranked", rollouts_per_example: 1 });
  const fork = await refused(`/v1/rollouts/${rolloutAt(id)}/fork`, { turn: 0, rollouts: 401 });
  expect(fork).toEqual({ ...run, param: "rollouts" });
});
