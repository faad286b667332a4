import { expect, test } from "vitest";
import { type EnvironmentView, RunRequest } from "../../src/contract/run.ts";
import {
  argumentFields,
  type Kind,
  PLACES,
  type Place,
  paramOf,
  sectionsOf,
  withoutSecrets,
} from "../../src/web/pages/new-run/fields.ts";
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
  expect(snippetOf("CLI", request, "")).toBe(`cat > run.json <<'JSON'
{
  "limits": {
    "deadline_s": 60
  },
  "min_scored": 0.5
}
JSON
rollcall eval shop@1.0.0 \\
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
