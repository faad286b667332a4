/**
 * The root of the hierarchy: a taskset, how its rows become prompts, and how rollouts of them are sampled and scored.
 *
 * Invariants. Options are closed: a misspelt one is an error at construction, never a setting that quietly does nothing.
 * The rubric is always a group, because every kind of environment adds metrics of its own.
 */

import type { Messages } from "../../contract/messages.ts";
import { Sampling } from "../../contract/sampling.ts";
import { refuseUnknownOptions } from "../options.ts";
import { Parser } from "../parsers/parser.ts";
import type { AnyRubric, RubricLike } from "../rubrics/rubric.ts";
import { asRubric, type RubricGroup } from "../rubrics/rubric-group.ts";
import type { Need } from "./contract.ts";
import type { Dataset } from "./dataset.ts";

export interface EnvironmentOptions<Task, S> {
  readonly dataset: Dataset<Task>;
  readonly evalDataset?: Dataset<Task>;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  /** The prompt of a task, in place of its `prompt` or `question`; the system prompt still goes before it. */
  readonly prompt?: (task: NoInfer<Task>) => Messages | string;
  readonly parser?: Parser;
  /** Sampling arguments under those of the run, which are merged over them member by member; a null takes one back. */
  readonly sampling?: Sampling;
  /** Tokens of prompt and completion that a turn keeps; what is beyond is cut off and the turn is truncated. */
  readonly maxSeqLen?: number;
  /** False: nothing is scored, every reward is 0. For rollouts whose scores are made elsewhere. */
  readonly scoreRollouts?: boolean;
  readonly rubric: RubricLike<NoInfer<Task>, NoInfer<S>>;
}

export const ENVIRONMENT_OPTIONS = [
  "dataset",
  "evalDataset",
  "systemPrompt",
  "fewShot",
  "prompt",
  "parser",
  "sampling",
  "maxSeqLen",
  "scoreRollouts",
  "rubric",
] as const;

/** What a class of environment adds for all its instances. */
export interface EnvironmentKind {
  readonly options: readonly string[];
  /** Metrics of the kind itself, computed after the author's rubrics. */
  readonly monitors: readonly AnyRubric[];
}

export abstract class Environment<Task, S> {
  /** Never there at run time: it carries the types to whoever infers them. */
  declare readonly types: readonly [Task, S];
  readonly dataset: Dataset<Task>;
  readonly evalDataset: Dataset<Task> | null;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  readonly sampling: Sampling;
  readonly maxSeqLen: number | null;
  readonly scoreRollouts: boolean;
  readonly rubric: RubricGroup;
  /** What it may use of the outside world; set by `defineEnvironment`. */
  needs: readonly Need[] = [];
  /** Whether a rollout can be taken up in the middle; set likewise. */
  forkable = true;
  readonly #prompt: EnvironmentOptions<Task, S>["prompt"];

  /** Throws TypeError for an unknown option, ZodError for sampling arguments that are none. */
  constructor(options: EnvironmentOptions<Task, S>, kind: EnvironmentKind) {
    refuseUnknownOptions(new.target.name, options, kind.options);
    this.dataset = options.dataset;
    this.evalDataset = options.evalDataset ?? null;
    if (options.systemPrompt !== undefined) this.systemPrompt = options.systemPrompt;
    if (options.fewShot !== undefined) this.fewShot = options.fewShot;
    this.#prompt = options.prompt;
    this.parser = options.parser ?? new Parser();
    this.sampling = Sampling.parse(options.sampling ?? {});
    this.maxSeqLen = options.maxSeqLen ?? null;
    this.scoreRollouts = options.scoreRollouts ?? true;
    this.rubric = kind.monitors.reduce<RubricGroup>(
      (group, monitor) => group.with(monitor),
      asRubric(options.rubric, this.parser),
    );
  }

  /** The prompt of a task by the environment's own rule; null where its row says it. */
  makePrompt(task: Task): Messages | string | null {
    return this.#prompt?.(task) ?? null;
  }
}
