/** The fields of a training's request that docs/training.md shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TrainingRequest, trainingSpecOf } from "../../src/contract/training-request.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/training.md"), "utf8");
const SHOWN = Array.from(PAGE.matchAll(/```json fields\n([\s\S]*?)```/g), ([, text = ""]) => text);
const BASE = { kind: "training", environment: "e", model: "m", endpoint: "p", max_steps: 1 };

test.each(SHOWN)("a request with the shown fields is accepted, and has them unchanged: %s", (text) => {
  const fields = JSON.parse(text);
  expect(TrainingRequest.parse({ ...BASE, ...fields })).toMatchObject(fields);
});

test("fields that are left out are not in a run's spec, so that old and new runs have the same one", () => {
  const spec = trainingSpecOf(TrainingRequest.parse(BASE), []);
  for (const name of ["loss_aggregation", "sample_filters", "reference"]) expect(spec).not.toHaveProperty(name);
});

test.each([
  [
    "two filters of one kind",
    { filters: { samples: [{ kind: "repetition" }, { kind: "repetition" }] } },
    "at most once",
  ],
  ["gibberish without a vocabulary", { filters: { samples: [{ kind: "gibberish" }] } }, "vocab_size"],
  ["a probability of 1", { filters: { samples: [{ kind: "repetition", prob_threshold: 1 }] } }, "prob_threshold"],
  ["a window of 0", { filters: { samples: [{ kind: "repetition", window: 0 }] } }, "window"],
  ["an unknown filter", { filters: { samples: [{ kind: "short" }] } }, "kind"],
  [
    "weights by prompt without advantages",
    { loss_aggregation: "prompt", advantage: { name: "none" } },
    "loss_aggregation",
  ],
  ["a negative weight of the KL", { reference: { model: "t", endpoint: "t", kl_weight: -1 } }, "kl_weight"],
  [
    "a judge with the reference's name",
    { judges: { reference_logprobs: { model: "t", endpoint: "t" } } },
    "reserved name",
  ],
])("%s is refused, and the field is named", (_, fields, message) => {
  const { error } = TrainingRequest.safeParse({ ...BASE, ...fields });
  expect(JSON.stringify(error?.issues)).toContain(message);
});
