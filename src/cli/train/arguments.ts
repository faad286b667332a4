/** Reads the flags of `rollcall train`, and checks them as far as possible without a platform. */
import { MOST_PASSES } from "@rollcall/trainer/trainer-process";
import type { TrainingRequestInput } from "../../contract/training-request.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { playArguments, type RunArguments } from "../eval/arguments.ts";
import type { DraftRequest } from "../eval/draft-request.ts";
import { usageError } from "../exit.ts";
import type { TRAIN_FLAGS } from "../run-flags.ts";

/**
 * The default settings of the embedded trainer, measured on two cores to reach its best within a minute.
 * docs/training.md has the curves.
 */
export interface TrainingDefaults {
  readonly max_steps: number;
  readonly group_size: number;
  readonly batch_rollouts: number;
  readonly max_concurrent: number;
  /** Limits how far ahead rollouts start: a task starts only if this lag would still let its rollouts be trained on. */
  readonly max_off_policy_steps: number;
  readonly learning_rate: number;
  /** How often each batch is trained on: more if its rollouts take longer than its training. */
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

/** The exceptions, by environment. */
const KNOWN: Readonly<Record<string, Partial<TrainingDefaults>>> = {
  calculator: { max_steps: 26, learning_rate: 2.5e-4, passes: 6 },
  "guess-number": { learning_rate: 7e-4 },
};

/** The trainer: a process of this package, or the user's own trainer, which fetches batches or receives them. */
export type TrainerChoice =
  | { readonly kind: "embedded" }
  | { readonly kind: "pull" }
  | { readonly kind: "push"; readonly url: string };

/** Settings of the embedded trainer; an undefined one has the environment's default. */
export interface Learning {
  readonly learningRate: number | undefined;
  readonly passes: number | undefined;
  readonly loss: string | undefined;
}

/** The request fields of a training run that an eval does not have. */
export type TrainingDraft = Partial<
  Pick<TrainingRequestInput, "max_steps" | "group_size" | "batch_size" | "initial_weights">
>;

export interface TrainArguments extends RunArguments {
  readonly training: TrainingDraft;
  readonly learning: Learning;
  readonly trainer: TrainerChoice;
  /** The number of tasks of each eval, none of them trained on; 0 for no evals. */
  readonly evalExamples: number;
  /** The command that resumes this run with the same trainer and tracker, without its `--resume`. */
  readonly again: string;
}

/** The settings from flags or from the demo. The connection has the named environment. */
export type TrainingSettings = Omit<TrainArguments, "json" | "resume" | "connect" | "again">;

const DEFAULT_EVAL_EXAMPLES = 256;

/** Throws a CommandError with exit code 2 that names the flag. */
export function trainArguments(line: CommandLine<keyof typeof TRAIN_FLAGS>): TrainArguments {
  const trainer = trainerChoice(line.text("trainer"));
  const run = playArguments(line, trainer.kind === "embedded");
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
    again: `${COMMAND} train${line.asGiven(["trainer", "track", "track-project"])}`,
  };
}

/** 0 is the control: everything runs, but the policy does not change. */
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

/** The number of tasks of each eval. */
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

/** The embedded trainer sends its weights only to the policy of the local platform. */
function refuseOtherModels({ endpoint, fleet }: DraftRequest): void {
  const named = typeof endpoint === "string" || endpoint?.base_url || fleet !== undefined;
  if (!named) return;
  throw usageError(
    "--trainer: the embedded trainer only trains the bundled policy; for another model use your own trainer: pull or push:URL",
    "trainer",
  );
}

/** The defaults for an environment, by its id. */
export function trainingDefaults(environment: string): TrainingDefaults {
  return { ...USUAL, ...KNOWN[environment] };
}
