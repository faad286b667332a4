/**
 * The root of the hierarchy: a taskset, how its rows become prompts, and how rollouts of them are scored.
 *
 * Invariants. Options are closed: a misspelt one is an error at construction, never a setting that quietly does nothing.
 * The rubric is always a group, because every kind of environment adds metrics of its own.
 */
import type { Messages } from "../messages.ts";
import { refuseUnknownOptions } from "../options.ts";
import { Parser } from "../parsers/parser.ts";
import { Rubric, type RubricLike, type RubricOptions } from "../rubrics/rubric.ts";
import { asRubric, type RubricGroup } from "../rubrics/rubric-group.ts";
import type { Dataset } from "../task.ts";
import type { Need } from "./contract.ts";

export interface EnvironmentOptions<Task, S> {
  readonly dataset: Dataset<Task>;
  readonly evalDataset?: Dataset<Task>;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser?: Parser;
  readonly rubric: RubricLike<NoInfer<Task>, NoInfer<S>>;
}

export const ENVIRONMENT_OPTIONS = [
  "dataset",
  "evalDataset",
  "systemPrompt",
  "fewShot",
  "parser",
  "rubric",
] as const;

/** What a class of environment adds for all its instances. */
export interface EnvironmentKind {
  readonly options: readonly string[];
  /** Metrics of the kind itself, computed after the author's rubrics. */
  readonly monitors: readonly Pick<RubricOptions, "metrics">[];
}

export abstract class Environment<Task, S> {
  /** Never there at run time: it carries the types to whoever infers them. */
  declare readonly types: readonly [Task, S];
  readonly dataset: Dataset<Task>;
  readonly evalDataset: Dataset<Task> | null;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  readonly rubric: RubricGroup;
  /** What it may use of the outside world; set by `defineEnvironment`. */
  needs: readonly Need[] = [];
  /** Whether a rollout can be taken up in the middle; set likewise. */
  forkable = true;

  constructor(options: EnvironmentOptions<Task, S>, kind: EnvironmentKind) {
    refuseUnknownOptions(new.target.name, options, kind.options);
    this.dataset = options.dataset;
    this.evalDataset = options.evalDataset ?? null;
    if (options.systemPrompt !== undefined) this.systemPrompt = options.systemPrompt;
    if (options.fewShot !== undefined) this.fewShot = options.fewShot;
    this.parser = options.parser ?? new Parser();
    this.rubric = kind.monitors.reduce<RubricGroup>(
      (group, monitor) => group.with(new Rubric(monitor)),
      asRubric(options.rubric, this.parser),
    );
  }
}
