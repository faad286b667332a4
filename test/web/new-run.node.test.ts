import { expect, test } from "vitest";
import { type EnvironmentView, RunRequest, type RunView } from "../../src/contract/run.ts";
import {
  argumentFields,
  foldFields,
  type Kind,
  PLACES,
  type Place,
  paramOf,
  sectionsOf,
  withoutSecrets,
} from "../../src/web/pages/new-run/fields.ts";
import { chosenOf, inlineJudges, textsOf } from "../../src/web/pages/new-run/preset.ts";
import { SNIPPETS, snippetOf } from "../../src/web/pages/new-run/print-snippet.ts";
import { buildRequest, fieldOf, type Written } from "../../src/web/pages/new-run/request.ts";

const ENVIRONMENT = {
  ...{ id: "shop", version: "1.0.0", dataset: "uploaded", judges: ["default"] },
  args: {
    type: "object",
    properties: {
      max: { type: "integer", default: 99, description: "the largest number" },
      level: { enum: [1, 2] },
      strict: { type: "boolean" },
      prompt: { type: "string" },
      tools: { type: "array" },
    },
    required: ["prompt", "max"],
  },
} as unknown as EnvironmentView;

function fieldsOf(kind: Kind = "eval", place: Place = "endpoint") {
  return sectionsOf(kind, place, ENVIRONMENT).flatMap(({ fields }) => fields);
}

function build(written: Written, kind: Kind = "eval", place: Place = "endpoint") {
  return buildRequest({ kind, environment: "shop@1.0.0", fields: fieldsOf(kind, place), written });
}

const WRITTEN: Written = {
  ...{ "environment_args.prompt": "say it's", "environment_args.level": "2", "environment_args.strict": "true" },
  ...{ "environment_args.tools": '["a"]', dataset: "rows", model: "qwen", endpoint: "gpu" },
  ...{ "judges.default.endpoint": "gpu", "judges.default.model": "big", "sampling.temperature": "0.5" },
  ...{ sampling: '{"stop": ["x"], "temperature": 1}', max_cost_micros: "2.5", metadata: "branch=main\nby=a=b" },
};

test("the arguments of an environment become fields by their JSON Schema", () => {
  expect(argumentFields(ENVIRONMENT.args).map(({ label, kind, required }) => [label, kind, required])).toEqual([
    ["max", "integer", false],
    ["level", "choice", false],
    ["strict", "choice", false],
    ["prompt", "text", true],
    ["tools", "json", false],
  ]);
});

test.each(PLACES)("with a model at %s, no folded field of an eval must be filled in", (place) => {
  const sections = sectionsOf("eval", place, ENVIRONMENT);
  const [folded, shown] = [true, false].map((rare) => sections.filter(({ isRare = false }) => isRare === rare));
  expect(folded?.flatMap(({ fields }) => fields).filter(({ required }) => required)).toEqual([]);
  const params = shown?.flatMap(({ fields }) => fields).map(paramOf);
  expect(params).toEqual(
    expect.arrayContaining(["environment_args.max", "num_examples", "rollouts_per_example", "model"]),
  );
  expect(params).toContain("judges.default.model");
});

test.each(PLACES)(
  "with a model at %s, few fields of a run are shown first, and no folded one must be filled in",
  (place) => {
    const { shown, folded } = foldFields(sectionsOf("eval", place, ENVIRONMENT));
    const params = (of: typeof shown) => of.flatMap(({ fields }) => fields).map(paramOf);
    const at = { endpoint: ["endpoint"], url: ["endpoint.base_url", "endpoint.api_key"], fleet: ["fleet"] }[place];
    expect(params(shown)).toEqual([
      ...["environment_args.prompt", "dataset", "num_examples", ...at, "model"],
      ...["judges.default.endpoint", "judges.default.model"],
    ]);
    expect(folded.flatMap(({ fields }) => fields).filter(({ required }) => required)).toEqual([]);
    expect(params(folded)).toEqual(expect.arrayContaining(["environment_args.max", "sampling", "max_cost_micros"]));
  },
);

/** A run with these settings, as the API returns it. */
const RUN = {
  ...{ id: "run_a", kind: "eval", name: "nightly", environment: { id: "shop", version: "1.0.0" }, model: "qwen" },
  ...{ endpoint: { id: "ep_a", name: "gpu", base_url: "https://gpu.example/v1" }, fleet: null, dataset: "ds_a" },
  environment_args: { prompt: "say it's", level: 2, strict: true, tools: ["a"], max: 99 },
  judges: { default: { endpoint: "ep_b", model: "big" }, strict: { endpoint: "ep_b", model: "huge" } },
  sampling: { temperature: 0.5, stop: ["x"] },
  ...{ num_examples: 12, rollouts_per_example: 1, max_concurrent: 32, min_scored: 0.5, shuffle: false, seed: 7 },
  ...{ limits: { call_timeout_s: 600, max_retries: 3 }, max_cost_micros: 2_500_000, training: null },
  metadata: { branch: "main", gate: "failed" },
} as unknown as RunView;

test("a run fills in the form with its settings, without the verdict of its gates", () => {
  const written = textsOf(RUN, ENVIRONMENT);
  expect(buildRequest({ ...chosenOf(RUN), environment: "shop@1.0.0", fields: fieldsOf(), written })).toEqual({
    wrong: {},
    request: {
      environment: "shop@1.0.0",
      environment_args: { prompt: "say it's", level: 2, strict: true, tools: ["a"] },
      ...{ model: "qwen", endpoint: "gpu", dataset: "ds_a", num_examples: 12, seed: 7, min_scored: 0.5 },
      ...{ judges: RUN.judges, sampling: RUN.sampling, limits: { max_retries: 3 } },
      ...{ max_cost_micros: 2_500_000, metadata: { branch: "main" } },
    },
  });
});

test("a run that used cached answers fills in that, and its command has the flag", () => {
  const written = textsOf({ ...RUN, answer_cache: true }, ENVIRONMENT);
  const { request } = buildRequest({ ...chosenOf(RUN), environment: "shop@1.0.0", fields: fieldsOf(), written });
  expect(request).toMatchObject({ answer_cache: true });
  expect(snippetOf("CLI", request, "http://127.0.0.1:8787")).toContain("--cache");
});

test("a judge whose endpoint was inline has no endpoint in the form, and keeps its model", () => {
  expect(inlineJudges(RUN, ["ep_b"])).toEqual([]);
  const written = textsOf(RUN, ENVIRONMENT, inlineJudges(RUN, ["ep_a"]));
  expect([written["judges.default.endpoint"], written["judges.default.model"]]).toEqual([undefined, "big"]);
});

test("a run whose endpoint was inline, or on a fleet, fills in the place of its model", () => {
  const inline = { ...RUN, endpoint: { id: "ep_c", name: null, base_url: "https://gpu.example/v1" } } as RunView;
  expect(chosenOf(inline).place).toBe("url");
  expect(textsOf(inline, ENVIRONMENT)["endpoint.base_url"]).toBe("https://gpu.example/v1");
  const onFleet: RunView = { ...RUN, endpoint: null, fleet: { id: "fl_a", name: "pool" } };
  expect([chosenOf(onFleet).place, textsOf(onFleet, ENVIRONMENT)["fleet"]]).toEqual(["fleet", "pool"]);
});

test("a training fills in its steps, its group size and its batch", () => {
  const training = {
    max_steps: 10,
    max_off_policy_steps: 2,
    batch_size: { rollouts: 64 },
    advantage: { name: "rloo" },
    target_lead: 3,
    sample_filters: [{ kind: "repetition", window: 3000, prob_threshold: 0.99, enforce: true }],
    loss_aggregation: "prompt",
    reference: { model: "teacher", kl_weight: 1 },
  };
  const run = { ...RUN, kind: "training", rollouts_per_example: 4, training } as unknown as RunView;
  const written = textsOf(run, ENVIRONMENT);
  const { request } = buildRequest({
    ...{ kind: "training", environment: "shop@1.0.0", fields: fieldsOf("training"), written },
  });
  expect(request).toMatchObject({
    group_size: 4,
    max_steps: 10,
    batch_size: { rollouts: 64 },
    advantage: { name: "rloo" },
    lead: 3,
    filters: { samples: training.sample_filters },
    loss_aggregation: "prompt",
    reference: { model: "teacher", kl_weight: 1 },
  });
  expect(request).not.toHaveProperty("num_examples");
});

test("elsewhere than on this machine the command names its platform", () => {
  const { request } = build(WRITTEN);
  expect(snippetOf("CLI", request, "https://rollcall.example")).toContain("--platform https://rollcall.example");
  for (const origin of ["http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787"]) {
    expect(snippetOf("CLI", request, origin)).not.toContain("--platform");
  }
});

test("what is kept of a form has no key", () => {
  const written = {
    model: "qwen",
    "endpoint.base_url": "https://gpu.example/v1",
    "endpoint.api_key": "sk-very-secret",
  };
  expect(withoutSecrets(written)).toEqual({ model: "qwen", "endpoint.base_url": "https://gpu.example/v1" });
});

test("the texts in the form become a valid request, and empty fields are not in it", () => {
  const { request, wrong } = build(WRITTEN);
  expect(wrong).toEqual({});
  expect(request).toEqual({
    environment: "shop@1.0.0",
    environment_args: { prompt: "say it's", level: 2, strict: true, tools: ["a"] },
    ...{ dataset: "rows", model: "qwen", endpoint: "gpu" },
    judges: { default: { endpoint: "gpu", model: "big" } },
    sampling: { stop: ["x"], temperature: 0.5 },
    max_cost_micros: 2_500_000,
    metadata: { branch: "main", by: "a=b" },
  });
  expect(RunRequest.safeParse({ kind: "eval", ...request }).success).toBe(true);
});

test("a training run's fields make a valid request", () => {
  const training = { max_steps: "10", "batch_size.rollouts": "64", "eval.every": "5", "trainer.delivery": "pull" };
  const { request, wrong } = build({ ...WRITTEN, ...training, fleet: "pool" }, "training", "fleet");
  expect(wrong).toEqual({});
  expect(RunRequest.safeParse(request).error).toBeUndefined();
  expect(request).toMatchObject({ kind: "training", fleet: "pool", max_steps: 10, eval: { every: 5 } });
  expect(request).not.toHaveProperty("endpoint");
});

test("on a fleet a training may name the path of version 0, and its command has that flag", () => {
  const written = { ...WRITTEN, max_steps: "3", fleet: "pool", "initial_weights.location": "s3://weights/base" };
  const { request } = build(written, "training", "fleet");
  expect(RunRequest.safeParse(request).error).toBeUndefined();
  expect(request).toMatchObject({ initial_weights: { location: "s3://weights/base" } });
  expect(snippetOf("CLI", request, "")).toContain("--initial-weights s3://weights/base");
  expect(build(written, "training").request).not.toHaveProperty("initial_weights");
});

test.each([
  [{ "environment_args.tools": "[1, 9007199254740993]" }, "[1]: the whole number 9007199254740993"],
  [{ "environment_args.tools": '[{"id": -9.007199254740993e15}]' }, "[0].id: the number -9.007199254740993e15"],
  [{ "environment_args.tools": '[{"id": 1, "id": 2}]' }, '[0]: the key "id" appears twice'],
  [{ sampling: '{"extra": {"far": 1e400}}' }, "extra.far: the number 1e400"],
  [{ "environment_args.max": "9007199254740993" }, "the whole number 9007199254740993"],
])("a typed number is never sent as another number: %j", (written, said) => {
  expect(Object.values(build({ ...WRITTEN, ...written }).wrong)).toEqual([expect.stringContaining(said)]);
});

test("a value that cannot be sent is an error at its field", () => {
  const bad = { "environment_args.max": "1.5", sampling: "[1]", seed: "x", max_cost_micros: "-1", metadata: "nothing" };
  const { wrong } = build({ ...WRITTEN, ...bad, "environment_args.tools": "{", model: " " });
  expect(Object.keys(wrong).sort()).toEqual([...Object.keys(bad), "environment_args.tools", "model"].sort());
});

test("rows in JSON take the place of the name of a dataset", () => {
  const { request } = build({ ...WRITTEN, dataset: "", "dataset.rows": '[{"question": "q"}]' });
  expect(request["dataset"]).toEqual([{ question: "q" }]);
});

test("a refusal is shown at the field that it names, or at the nearest one", () => {
  const fields = fieldsOf();
  expect(fieldOf("environment_args.max", fields)).toBe("environment_args.max");
  expect(fieldOf("sampling.stop", fields)).toBe("sampling");
  expect(fieldOf("dataset[0].answer", fields)).toBe("dataset");
  expect(fieldOf("judges.default", fields)).toBe("judges");
  expect(fieldOf("judge_cache", fields)).toBeNull();
});

const SECRET = "sk-very-secret";

test.each(SNIPPETS)("no key is in the run as %s", (kind) => {
  const { request } = build(
    { ...WRITTEN, "endpoint.base_url": "https://gpu.example/v1", "endpoint.api_key": SECRET },
    "eval",
    "url",
  );
  expect(JSON.stringify(request)).toContain(SECRET);
  const text = snippetOf(kind, request, "http://127.0.0.1:8787");
  expect(text).not.toContain(SECRET);
  expect(text).toContain("MODEL_API_KEY");
});

test("the command has flags where they exist, and a file for the rest", () => {
  const { request } = build({ ...WRITTEN, min_scored: "0.5", "limits.max_retries": "3", "limits.deadline_s": "60" });
  expect(snippetOf("CLI", request, "http://127.0.0.1:8787")).toBe(`cat > run.json <<'JSON'
{
  "limits": {
    "deadline_s": 60
  },
  "min_scored": 0.5
}
JSON
npx --no-install rollcall eval shop@1.0.0 \\
  -f run.json \\
  -a '{"level":2,"strict":true,"prompt":"say it'\\''s","tools":["a"]}' \\
  --dataset rows \\
  -e gpu \\
  -m qwen \\
  --judge default=big@gpu \\
  -T 0.5 \\
  -S '{"stop":["x"]}' \\
  --max-cost 2.5 \\
  --max-retries 3 \\
  --metadata branch=main \\
  --metadata by=a=b`);
});

test("a training's command leaves the trainer to the user, as the request does", () => {
  const { request } = build(
    { ...WRITTEN, max_steps: "3", "trainer.delivery": "push", "trainer.url": "https://t.example" },
    "training",
  );
  expect(snippetOf("CLI", request, "")).toContain("--max-steps 3");
  expect(snippetOf("CLI", request, "")).toContain("--trainer push:https://t.example");
});

test("the TypeScript is a program whose request is the form's", () => {
  const { request } = build(WRITTEN);
  const text = snippetOf("TypeScript", { ...request, metadata: { "a-b": "1" } }, "http://x");
  const literal = /runs\.create\(([\s\S]*?)\);\n\nfor/.exec(text)?.[1] ?? "";
  expect(new Function(`return ${literal}`)()).toEqual({ ...request, metadata: { "a-b": "1" } });
});
