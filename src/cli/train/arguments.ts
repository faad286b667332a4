/** The flags of `rollcall train`, read and checked as far as that is possible without a platform. */
import { MOST_PASSES } from "@rollcall/trainer/trainer-process";
import type { TrainingRequestInput } from "../../contract/training-request.ts";
import { defined } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { type DraftRequest, playArguments, type RunArguments } from "../eval/arguments.ts";
import { usageError } from "../exit.ts";
import type { TRAIN_FLAGS } from "../run-flags.ts";

/**
 * How the embedded trainer learns where nothing else is asked: measured, on two cores, to reach its best within a minute.
 * docs/training.md has the curves.
 */
export interface TrainingDefaults {
  readonly max_steps: number;
  readonly group_size: number;
  readonly batch_rollouts: number;
  readonly max_concurrent: number;
  /** Paces the rollouts: tasks are begun no further ahead than what this lets train. */
  readonly max_off_policy_steps: number;
  readonly learning_rate: number;
  /** How often a batch is trained on: more where its rollouts take longer than its training. */
  readonly passes: number;
  readonly loss: string;
}

const USUAL: TrainingDefaults = {
  max_steps: 48,
  group_size: 8,
  batch_rollouts: 64,
  max_concurrent: 64,
  max_off_policy_steps: 2,
  learning_rate: 5e-4,
  passes: 1,
  loss: "dppo",
};

/** Where an environment needs something else. */
const KNOWN: Readonly<Record<string, Partial<TrainingDefaults>>> = {
  calculator: { max_steps: 26, learning_rate: 2.5e-4, passes: 6 },
  "guess-number": { learning_rate: 7e-4 },
};

/** Who trains: a process of this package's, or somebody's trainer that takes batches, or gets them sent. */
export type TrainerChoice =
  | { readonly kind: "embedded" }
  | { readonly kind: "pull" }
  | { readonly kind: "push"; readonly url: string };

/** Settings of the embedded trainer; what is undefined is as the environment needs it. */
export interface Learning {
  readonly learningRate: number | undefined;
  readonly passes: number | undefined;
  readonly loss: string | undefined;
}

/** What a training run is asked beside what an eval is. */
export type TrainingDraft = Partial<
  Pick<TrainingRequestInput, "max_steps" | "group_size" | "batch_size" | "initial_weights">
>;

export interface TrainArguments extends RunArguments {
  readonly training: TrainingDraft;
  readonly learning: Learning;
  readonly trainer: TrainerChoice;
  /** Tasks of each eval, none of them trained on; 0 = no evals. */
  readonly evalExamples: number;
}

/** What was asked for, by flags or by the demo. The environment that was named is the connection's. */
export type TrainingSettings = Omit<TrainArguments, "json" | "resume" | "connect">;

const DEFAULT_EVAL_EXAMPLES = 256;

/** Throws a CommandError of exit 2 that names the flag. */
export function trainArguments(line: CommandLine<keyof typeof TRAIN_FLAGS>): TrainArguments {
  const run = playArguments(line);
  const trainer = trainerChoice(line.text("trainer"));
  if (trainer.kind === "embedded") refuseOtherModels(run.draft);
  const training = trainingDraft(line);
  if (training.initial_weights !== undefined && run.draft.fleet === undefined) {
    throw usageError("--initial-weights: needs --fleet", "initial-weights");
  }
  return {
    ...run,
    trainer,
    training,
    learning: { learningRate: learningRateOf(line), passes: passesOf(line), loss: line.text("loss") },
    evalExamples: evalExamplesOf(line),
  };
}

/** 0 is the control: everything runs, and nothing is learnt. */
export function learningRateOf(line: CommandLine<"learning-rate">): number | undefined {
  const rate = line.number("learning-rate");
  if (rate === undefined || rate >= 0) return rate;
  throw usageError("--learning-rate: must be 0 or more", "learning-rate");
}

function passesOf(line: CommandLine<"passes">): number | undefined {
  const passes = line.count("passes", 1);
  if (passes === undefined || passes <= MOST_PASSES) return passes;
  throw usageError(`--passes: must be at most ${MOST_PASSES}`, "passes");
}

/** Tasks of each eval. */
export function evalExamplesOf(line: CommandLine<"eval-examples">): number {
  return line.count("eval-examples", 0) ?? DEFAULT_EVAL_EXAMPLES;
}

function trainingDraft(line: CommandLine<keyof typeof TRAIN_FLAGS>): TrainingDraft {
  const rollouts = line.count("batch-size", 1);
  const location = line.text("initial-weights");
  return defined({
    max_steps: line.count("max-steps", 1),
    group_size: line.count("group-size", 1),
    batch_size: rollouts === undefined ? undefined : { rollouts },
    initial_weights: location === undefined ? undefined : { location },
  });
}

function trainerChoice(text: string | undefined): TrainerChoice {
  if (text === undefined || text === "embedded") return { kind: "embedded" };
  if (text === "pull") return { kind: "pull" };
  const [, url] = /^push:(.+)$/.exec(text) ?? [];
  if (url === undefined || !/^https?:/i.test(url) || !URL.canParse(url)) {
    throw usageError(`--trainer: ${text} is not embedded, pull or push:URL`, "trainer");
  }
  return { kind: "push", url };
}

/** It sends its weights to the policy beside the platform, and to nothing else. */
function refuseOtherModels({ endpoint, fleet }: DraftRequest): void {
  const named = typeof endpoint === "string" || endpoint?.base_url || fleet !== undefined;
  if (!named) return;
  throw usageError(
    "--trainer: the embedded trainer only trains the bundled policy; for another model use your own trainer: pull or push:URL",
    "trainer",
  );
}

/** By the environment's id. */
export function trainingDefaults(environment: string): TrainingDefaults {
  return { ...USUAL, ...KNOWN[environment] };
}
