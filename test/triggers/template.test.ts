import { expect, test } from "vitest";
import type { JsonObject } from "../../src/contract/json.ts";
import { checkTemplate, readRun } from "../../src/triggers/template.ts";

const EVAL = { environment: "gsm8k", model: "m", endpoint: "e" };
const TRAINING = { ...EVAL, kind: "training", max_steps: 3 };

/** The wrong field; null if there is none. */
function faultOf(run: JsonObject, map: Record<string, string> = {}, when: JsonObject = {}): string | null {
  const checked = checkTemplate(run, map, when);
  return checked.ok ? null : checked.error.param;
}

test("a template is valid if payloads fill in what it lacks, of any type", () => {
  const map = {
    "metadata.sha": "$.sha",
    seed: "$.seed",
    shuffle: "$.shuffle",
    environment_args: "$.args",
    model: "$.m",
  };
  expect(checkTemplate({ environment: "gsm8k", endpoint: "e" }, map, {})).toMatchObject({
    ok: true,
    sample: { kind: "eval", model: "placeholder", seed: 1, shuffle: true, environment_args: {} },
  });
  expect(faultOf(TRAINING, { "trainer.delivery": "$.d", "batch_size.rollouts": "$.n", max_steps: "$.s" })).toBeNull();
});

test("if no placeholder fits, only a payload can show whether the template is valid", () => {
  expect(checkTemplate({ ...TRAINING, curriculum: { name: "cycle" } }, { "curriculum.name": "$.c" }, {})).toEqual({
    ok: true,
    sample: null,
  });
});

test("an error in the template itself is reported, with or without mapped fields", () => {
  expect(faultOf({ ...EVAL, num_examples: 0 })).toBe("run.num_examples");
  expect(faultOf({ environment: "gsm8k", endpoint: "e" })).toBe("run.model");
  expect(faultOf({ ...EVAL, sampling: { temperature: -1 } }, { "sampling.seed": "$.s" })).toBe(
    "run.sampling.temperature",
  );
  expect(faultOf({ ...EVAL, modle: "m" }, { seed: "$.s" })).toBe("run.modle");
  expect(faultOf({ ...EVAL, metadata: "none" }, { "metadata.sha": "$.s" })).toBe("map.metadata.sha");
});

test("an unknown field, the kind, and a field inside a mapped field cannot be mapped", () => {
  expect(faultOf(EVAL, { "metdata.sha": "$.s" })).toBe("map.metdata.sha");
  expect(faultOf(EVAL, { "limits.deadline": "$.s" })).toBe("map.limits.deadline");
  expect(faultOf(EVAL, { max_steps: "$.s" })).toBe("map.max_steps");
  expect(faultOf(EVAL, { kind: "$.k" })).toBe("map.kind");
  expect(faultOf(EVAL, { metadata: "$.m", "metadata.sha": "$.s" })).toBe("map.metadata.sha");
});

test("invalid paths are refused with their field", () => {
  expect(faultOf(EVAL, { "metadata.sha": "$.a[*]" })).toBe("map.metadata.sha");
  expect(faultOf(EVAL, { "a[0]": "$.a" })).toBe("map");
  expect(faultOf(EVAL, {}, { "$..a": 1 })).toBe("when");
});

test("a template and mapped fields cannot contain a key", () => {
  const endpoint = { base_url: "https://gpu.example/v1", api_key: "sk-secret" };
  expect(faultOf({ ...EVAL, endpoint })).toBe("run.endpoint.api_key");
  expect(faultOf({ ...EVAL, judges: { default: { endpoint, model: "j" } } })).toBe(
    "run.judges.default.endpoint.api_key",
  );
  expect(faultOf({ ...EVAL, endpoint: { base_url: "https://gpu.example/v1" } }, { "endpoint.api_key": "$.k" })).toBe(
    "map.endpoint.api_key",
  );
});

test("the run that results from a payload is parsed like any request", () => {
  expect(readRun(EVAL)).toMatchObject({ ok: true, value: { kind: "eval", num_examples: -1 } });
  expect(readRun({ ...EVAL, seed: "x" })).toMatchObject({ ok: false, error: { param: "seed" } });
});
