/**
 * Decides whether a rollout can be trained on as a whole, and converts its turns for samples (samples.ts): ids and
 * logprobs are the engine's, verbatim, and each turn has the version of the weights that sampled it.
 */
import { isTrained, type StoredPrompt, type StoredTurn, type Trajectory } from "../../contract/trajectory.ts";
import { float32s, int32s } from "../rollout/tokens.ts";
import { type ServedWeights, servedDuring } from "./numbering.ts";

export type UntrainableCause =
  | "errored"
  | "cancelled"
  | "no_tokens"
  | "length_mismatch"
  | "missing_logprob"
  | "nonfinite"
  | "positive_logprob"
  | "unpublished_version"
  | "unknown_version"
  | "tokens_cut"
  | "empty";

export interface SamplingFacts {
  /** The version with which the rollout was started. */
  readonly dispatch_version: number;
  /**
   * The weights that the engines served, in order of time. They determine the version of a turn whose engine sent no
   * label. If absent, such a turn has the version with which its rollout was started.
   */
  readonly served?: readonly ServedWeights[] | undefined;
  /**
   * On a fleet: for each turn the version that sampled it, or null if it is unknown. If present, only this determines
   * the version.
   */
  readonly stamped?: readonly (number | null)[];
  /** The newest version that exists; absent: unknown. */
  readonly newest_version?: number | undefined;
  /**
   * A prompt that differs from the sample only within the last answer, by fewer tokens than this, continues the sample:
   * the differing tokens become context. 0: never; it begins a new sample.
   */
  readonly fork_threshold_tokens?: number;
}

export type TrainedTurn = Pick<
  StoredTurn,
  | "tokens"
  | "policy_version"
  | "first_policy_version"
  | "usage"
  | "is_truncated"
  | "finish_reason"
  | "answered_at"
  | "latency_ms"
  | "sent_at"
  | "dispatch_version"
  | "asked"
> & { readonly prompt: Pick<StoredPrompt, "after"> };

export type TrainedTrajectory = Pick<Trajectory, "error" | "cancelled"> & {
  readonly turns: readonly TrainedTurn[];
};

export interface TurnArrays {
  /** The turn that it continues; absent: the turn before. */
  readonly after?: number | undefined;
  /** Prompt ids beyond those of the turn that it continues, or all of them if it is `forked`. */
  readonly suffix: Int32Array;
  readonly forked: boolean;
  readonly answer: Int32Array;
  /** Null if the turn is excluded from training: then its answer is at most context of other turns. */
  readonly sampled: { readonly logprobs: Float32Array; readonly version: number } | null;
}

/** Engines send -9999 for a missing logprob. */
const MISSING = -9000;
/** Tolerance for the rounding of a probability of 1. */
const ABOVE_ZERO = 1e-6;

/** Checks turn by turn whether a rollout can be trained on, so that it need not be in memory as a whole. */
export class TrainableCheck {
  #cause: UntrainableCause | null;
  #turns = 0;
  #sampled = false;
  #cut = false;

  constructor({ error, cancelled }: Pick<TrainedTrajectory, "error" | "cancelled">) {
    const ended = cancelled === null ? null : "cancelled";
    this.#cause = error === null ? ended : "errored";
  }

  /** Converts the next turn; null once the rollout cannot be trained on. `at`: its index in `facts.stamped`. */
  add(turn: TrainedTurn, at: number, facts: SamplingFacts): TurnArrays | null {
    if (this.#cause !== null) return null;
    const arrays = readTurn(turn, at, facts);
    if (typeof arrays === "string") {
      this.#cause = arrays;
      return null;
    }
    // The first token of a sample is never trained, so an answer must not begin there.
    const begins = arrays.forked || this.#turns === 0;
    this.#turns += 1;
    if (arrays.sampled === null) return arrays;
    this.#sampled ||= arrays.answer.length > 0;
    this.#cut ||= isCut(turn);
    if (!begins || arrays.suffix.length > 0) return arrays;
    this.#cause = "no_tokens";
    return null;
  }

  /** Why none of the added turns trains, or null. */
  cause(): UntrainableCause | null {
    if (this.#cause !== null || this.#sampled) return this.#cause;
    return this.#cut ? "tokens_cut" : "empty";
  }
}

/** Whether it was cut to the environment's `maxSeqLen`: the rest is a valid beginning of the answer, and trains. */
function isCut(turn: TrainedTurn): boolean {
  return turn.is_truncated && turn.finish_reason !== "length";
}

/** One turn converted for samples, or why its rollout gives none. `at`: its number in the rollout. */
export function readTurn(turn: TrainedTurn, at: number, facts: SamplingFacts): TurnArrays | UntrainableCause {
  if (!isTrained(turn)) return excludedTurn(turn);
  const { tokens, prompt } = turn;
  if (tokens === null) return "no_tokens";
  if (tokens.completion_logprobs === null) return "missing_logprob";
  const answer = int32s(tokens.completion_ids);
  const logprobs = float32s(tokens.completion_logprobs);
  if (answer.length !== logprobs.length) return "length_mismatch";
  const suffix = int32s(tokens.prompt_suffix_ids);
  const fault = logprobFault(logprobs);
  if (fault !== null) return fault;
  const version = facts.stamped === undefined ? versionOf(turn, facts) : stampedOf(turn, facts.stamped[at], facts);
  if (typeof version === "string") return version;
  return { after: prompt.after, suffix, forked: tokens.forked, answer, sampled: { logprobs, version } };
}

/** Its ids are needed only for turns that continue it, so it may have none. */
function excludedTurn({ tokens, prompt: { after } }: TrainedTurn): TurnArrays {
  const { prompt_suffix_ids = "", completion_ids = "", forked = true } = tokens ?? {};
  return { after, suffix: int32s(prompt_suffix_ids), forked, answer: int32s(completion_ids), sampled: null };
}

/** The first fault of sampling logprobs, or null. */
export function logprobFault(logprobs: Float32Array): "nonfinite" | "missing_logprob" | "positive_logprob" | null {
  for (const logprob of logprobs) {
    if (!Number.isFinite(logprob)) return "nonfinite";
    if (logprob <= MISSING) return "missing_logprob";
    if (logprob > ABOVE_ZERO) return "positive_logprob";
  }
  return null;
}

/** The version that sampled a turn's last token, or why there is none: an impossible label, or an unknown version. */
function versionOf(
  turn: TrainedTurn,
  { dispatch_version, newest_version, served }: SamplingFacts,
): number | "unpublished_version" | "unknown_version" {
  const met = served && servedDuring(served, whileCalled(turn));
  const unlimited = Number.MAX_SAFE_INTEGER;
  const newest = Math.min(newest_version ?? unlimited, met?.newest ?? unlimited);
  const [first, last] = [turn.first_policy_version, turn.policy_version].map(versionIn);
  if ([first, last].some((version) => version === undefined || (version ?? 0) > newest)) return "unpublished_version";
  if (last !== null && last !== undefined) return last;
  if (met !== undefined) return met.version ?? "unknown_version";
  return turn.dispatch_version ?? dispatch_version;
}

/** The fleet's version, unless the engine itself reports another one: then the version is unknown. */
function stampedOf(
  turn: TrainedTurn,
  version: number | null | undefined,
  { newest_version }: SamplingFacts,
): number | "unpublished_version" | "unknown_version" {
  if (version === null || version === undefined) return "unknown_version";
  const labels = [turn.first_policy_version, turn.policy_version].map(versionIn);
  if (labels.some((label) => label !== null && label !== version)) return "unknown_version";
  return version > (newest_version ?? Number.MAX_SAFE_INTEGER) ? "unpublished_version" : version;
}

/** If a turn has no time of its call, the call is assumed to have taken the model's latency. */
function whileCalled({ sent_at, answered_at, latency_ms }: TrainedTurn) {
  return { from: sent_at ?? answered_at - latency_ms, to: answered_at };
}

/**
 * The version in an engine's label. A label that is a number is a version, but one that is negative or not whole is
 * impossible: undefined. Any other label is just a name: null.
 */
function versionIn(label: string | null | undefined): number | null | undefined {
  const said = label?.trim() ?? "";
  if (/^\d{1,15}$/.test(said)) return Number(said);
  const isNumber = !Number.isNaN(Number(said)) || /^[+-]?nan$/i.test(said);
  return said !== "" && isNumber ? undefined : null;
}
