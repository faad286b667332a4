import { expect, test } from "vitest";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { TRAIN_FLAGS } from "../../src/cli/run-flags.ts";
import { trainArguments } from "../../src/cli/train/arguments.ts";
import { trainingFields } from "../../src/cli/train/summary.ts";
import { aTraining } from "./a-training.ts";

test("the command that resumes a training keeps its trainer and its tracker, quoted where a shell would split them", () => {
  const againOf = (...argv: readonly string[]) =>
    trainArguments(readCommandLine({ name: "train", help: "", flags: TRAIN_FLAGS }, ["gsm8k", ...argv])).again;
  expect(againOf("--trainer", "push:http://me.test/?a=1&b=2", "--track", "wandb", "--track-project", "models")).toBe(
    "npx rollcall train --trainer 'push:http://me.test/?a=1&b=2' --track wandb --track-project models",
  );
  expect(againOf("--max-steps", "2")).toBe("npx rollcall train");
});

test("a training on a fleet names the path of version 0, and is shown with it", () => {
  const argv = "gsm8k --trainer pull -m m --fleet gpus --initial-weights s3://weights/base".split(" ");
  const { training, draft } = trainArguments(readCommandLine({ name: "train", help: "", flags: TRAIN_FLAGS }, argv));
  expect(training).toEqual({ initial_weights: { location: "s3://weights/base" } });
  expect(draft).toMatchObject({ fleet: "gpus" });
  const shown = trainingFields(aTraining({ initial_weights: { location: "s3://weights/base" } }));
  expect(shown).toMatchObject({ "version 0": "s3://weights/base" });
  expect(trainingFields(aTraining())).toMatchObject({ "version 0": null });
});

test("a training shows its reference, and what its filters found and left out, if it has any", () => {
  const samples = { ...aTraining().samples, flagged: { gibberish: 2, repetition: 9 }, filtered: { repetition: 9 } };
  const shown = trainingFields(aTraining({ samples, reference: { model: "teacher", kl_weight: 1 } }));
  expect(shown).toMatchObject({ reference: "teacher", flagged: "gibberish 2, repetition 9", filtered: "repetition 9" });
  expect(trainingFields(aTraining())).toMatchObject({ reference: null, flagged: null, filtered: null });
});
