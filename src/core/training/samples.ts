/**
 * Builds training samples from the turns of a rollout; nothing is tokenised again.
 *
 * Invariants. A turn continues the longest open sample whose ids are exactly a prefix of its prompt; if there is none,
 * a new sample begins. So each sampled token trains in exactly one sample, other samples have it as context, and ids
 * and logprobs are the engine's, verbatim. A rollout that cannot be trained on as a whole gives no samples, but a
 * cause; it keeps its score. After each turn its sample has exactly that turn's prompt and answer: the ids of a turn
 * that continues it are stored as a suffix of them. A turn that is excluded from training is in no sample, except as
 * context of turns that continue it.
 */
import { continuedBy, isTrained } from "../../contract/trajectory.ts";
import type { Lengths } from "./advantage.ts";
import {
  type SamplingFacts,
  TrainableCheck,
  type TrainedTrajectory,
  type TurnArrays,
  type UntrainableCause,
} from "./trainable.ts";

export interface RolloutSamples {
  readonly samples: readonly TokenSample[];
  /** Null if it can be trained on; otherwise there are no samples. */
  readonly untrainable: UntrainableCause | null;
  /** Transitions between turns: the next continued the ids, began a sample, or overwrote the answer's end. */
  readonly transitions: {
    readonly clean: number;
    readonly forked: number;
    readonly realigned: number;
  };
  /** How samples began: the first of a rollout, a new one, or one after an overwrite. */
  readonly branches: RolloutSamples["transitions"];
  /** Number of overwritten tokens. */
  readonly drift_tokens: number;
  readonly lengths: Lengths;
}

export function samplesOf(trajectory: TrainedTrajectory, facts: SamplingFacts): RolloutSamples {
  const turns = readTurns(trajectory, facts);
  return typeof turns === "string" ? untrainable(trajectory, turns) : build(turns, facts);
}

function readTurns(trajectory: TrainedTrajectory, facts: SamplingFacts): readonly TurnArrays[] | UntrainableCause {
  const check = new TrainableCheck(trajectory);
  const read: TurnArrays[] = [];
  for (const [at, turn] of trajectory.turns.entries()) {
    const arrays = check.add(turn, at, facts);
    if (arrays === null) break;
    read.push(arrays);
  }
  return check.cause() ?? read;
}

function build(turns: readonly TurnArrays[], facts: SamplingFacts): RolloutSamples {
  const threshold = facts.fork_threshold_tokens ?? 0;
  const open: OpenSample[] = [];
  const transitions = { clean: 0, forked: 0, realigned: 0 };
  let drift_tokens = 0;
  const ended: EarlierTurn[] = [];
  for (const [index, turn] of turns.entries()) {
    const base = ended[continuedBy(index, turn)] ?? null;
    if (turn.sampled === null) {
      ended.push(excludedTurn(turn, base));
      continue;
    }
    const place = placeOf(turn, { open, base, threshold });
    if (open.length > 0) transitions[place.transition] += 1;
    if (place.transition === "forked") open.push(place.sample);
    drift_tokens += place.drift;
    place.sample.addContext(place.context);
    place.sample.addAnswer(turn.answer, turn.sampled.logprobs, turn.sampled.version);
    ended.push(new EndedTurn(place.sample));
  }
  const kept = open.filter(({ trains }) => trains);
  const samples = kept.map((sample) => sample.close(facts.dispatch_version));
  const total = samples.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  const trained = turns.filter(({ sampled }) => sampled !== null);
  const output = trained.reduce((sum, { answer }) => sum + answer.length, 0);
  const lengths = { output, total, turns: trained.length };
  const branches = branchesOf(kept);
  return { samples, untrainable: null, transitions, branches, drift_tokens, lengths };
}

function branchesOf(samples: readonly OpenSample[]): RolloutSamples["branches"] {
  const realigned = samples.filter((sample) => sample.realigned).length;
  const clean = samples[0]?.realigned === false ? 1 : 0;
  return { clean, forked: samples.length - clean - realigned, realigned };
}

interface Placement {
  readonly sample: OpenSample;
  /** The part of the prompt that the sample does not have yet. */
  readonly context: Int32Array;
  readonly transition: "clean" | "forked" | "realigned";
  readonly drift: number;
}

interface Opened {
  readonly open: readonly OpenSample[];
  /** The turn that it continues; null for the first one. */
  readonly base: EarlierTurn | null;
  readonly threshold: number;
}

/** Chooses the sample for a turn, and the context to be added to it. */
function placeOf({ suffix, forked }: TurnArrays, { open, base, threshold }: Opened): Placement {
  if (base === null) return fork(suffix);
  const { trained, ids } = forked ? { trained: null, ids: suffix } : idsAfterTrained(base, suffix);
  // The usual case only costs the new ids, not the previous ones.
  const [only] = open;
  if (trained !== null && open.length === 1 && only?.last === trained) return goOn(only, ids);
  const prompt = trained === null ? ids : joined([...trained.ids(), ids]);
  const common = open.map((sample) => ({ sample, shared: sample.commonPrefix(prompt) }));
  const whole = common.filter(({ sample, shared }) => shared === sample.length);
  const longest = furthest(whole);
  if (longest !== null) return goOn(longest.sample, prompt.subarray(longest.shared));
  const drifted = furthest(
    common.filter(
      ({ sample, shared }) => shared >= sample.answerStart && sample.length - shared < threshold && shared > 0,
    ),
  );
  if (drifted === null) return fork(prompt);
  const { sample, shared } = drifted;
  const drift = sample.length - shared;
  sample.cutTo(shared);
  return { sample, context: prompt.subarray(shared), transition: "realigned", drift };
}

function goOn(sample: OpenSample, context: Int32Array): Placement {
  return { sample, context, transition: "clean", drift: 0 };
}

function fork(prompt: Int32Array): Placement {
  return { sample: new OpenSample(), context: prompt, transition: "forked", drift: 0 };
}

function furthest<Kind extends { readonly shared: number }>(found: readonly Kind[]): Kind | null {
  return found.reduce<Kind | null>((best, one) => (best === null || one.shared > best.shared ? one : best), null);
}

function untrainable(trajectory: TrainedTrajectory, cause: UntrainableCause): RolloutSamples {
  const turns = trajectory.turns.filter(isTrained);
  const output = turns.reduce((sum, { usage }) => sum + (usage?.completion_tokens ?? 0), 0);
  // The last turn's prompt includes all previous turns.
  const total = Math.max(output, turns.at(-1)?.usage?.total_tokens ?? 0);
  return {
    samples: [],
    untrainable: cause,
    transitions: { clean: 0, forked: 0, realigned: 0 },
    branches: { clean: 0, forked: 0, realigned: 0 },
    drift_tokens: 0,
    lengths: { output, total, turns: turns.length },
  };
}

// One training sample while turns are added to it: token ids, which of them were sampled, with which logprobs, by which
// version.  Invariants. The arrays are unshifted and have the same length. Context has mask 0 and logprob 0; sampled
// tokens have mask 1 and the engine's logprob, verbatim; the spans cover exactly the sampled tokens, in order.

/** A half-open interval of token positions. */
export interface VersionSpan {
  readonly version: number;
  readonly start: number;
  readonly end: number;
}

/** One flat token sequence of a rollout. */
export interface TokenSample {
  readonly token_ids: Int32Array<ArrayBuffer>;
  /** 1: sampled, and to be trained. */
  readonly mask: Uint8Array<ArrayBuffer>;
  /** Natural logarithms, by the weights that sampled; 0 where the mask is 0. */
  readonly logprobs: Float32Array<ArrayBuffer>;
  readonly weight_versions: readonly VersionSpan[];
  /** The oldest and the newest version that sampled tokens of it. */
  readonly policy_version_start: number;
  readonly policy_version_end: number;
  readonly trainable_tokens: number;
}

const FIRST_CAPACITY = 64;

class OpenSample {
  length = 0;
  /** The position at which the last answer begins. */
  answerStart = 0;
  /** The last turn that was added. */
  last: EndedTurn | null = null;
  /** Whether a part of it was overwritten. */
  realigned = false;
  #ids = new Int32Array(FIRST_CAPACITY);
  #mask = new Uint8Array(FIRST_CAPACITY);
  #logprobs = new Float32Array(FIRST_CAPACITY);
  #spans: VersionSpan[] = [];

  addContext(ids: Int32Array): void {
    this.#reserve(ids.length);
    this.#ids.set(ids, this.length);
    this.length += ids.length;
  }

  addAnswer(ids: Int32Array, logprobs: Float32Array, version: number): void {
    this.#reserve(ids.length);
    const [start, end] = [this.length, this.length + ids.length];
    this.#ids.set(ids, start);
    this.#logprobs.set(logprobs, start);
    this.#mask.fill(1, start, end);
    if (end > start) this.#spans.push({ version, start, end });
    this.answerStart = start;
    this.length = end;
  }

  /** Whether it has any sampled token. */
  get trains(): boolean {
    return this.#spans.length > 0;
  }

  /** The number of its first tokens that are equal to those of `prompt`. */
  commonPrefix(prompt: Int32Array): number {
    const most = Math.min(this.length, prompt.length);
    let at = 0;
    while (at < most && this.#ids[at] === prompt[at]) at += 1;
    return at;
  }

  /** Removes everything from `length` on, which is a part of the last answer. */
  cutTo(length: number): void {
    this.last?.keepFrom(length);
    this.#mask.fill(0, length, this.length);
    this.#logprobs.fill(0, length, this.length);
    this.#spans = this.#spans
      .filter(({ start }) => start < length)
      .map((span) => ({ ...span, end: Math.min(span.end, length) }));
    this.length = length;
    this.realigned = true;
  }

  /** Its ids between two positions. */
  idsBetween(start: number, end: number): Int32Array {
    return this.#ids.subarray(start, end);
  }

  /** `dispatched`: the version with which its rollout was started. */
  close(dispatched: number): TokenSample {
    const versions = this.#spans.map(({ version }) => version);
    return {
      token_ids: this.#ids.slice(0, this.length),
      mask: this.#mask.slice(0, this.length),
      logprobs: this.#logprobs.slice(0, this.length),
      weight_versions: this.#spans,
      policy_version_start: Math.min(dispatched, ...versions),
      policy_version_end: versions.length === 0 ? dispatched : Math.max(...versions),
      trainable_tokens: this.#spans.reduce((sum, { start, end }) => sum + end - start, 0),
    };
  }

  #reserve(more: number): void {
    if (this.length + more <= this.#ids.length) return;
    const capacity = Math.max(2 * this.#ids.length, this.length + more);
    this.#ids = grow(this.#ids, new Int32Array(capacity));
    this.#mask = grow(this.#mask, new Uint8Array(capacity));
    this.#logprobs = grow(this.#logprobs, new Float32Array(capacity));
  }
}

type EarlierTurn = EndedTurn | ExcludedTurn;

/** A turn that was added to a sample: the sample begins with its prompt and its answer. */
class EndedTurn {
  readonly #sample: OpenSample;
  /** How many of its ids are still in the sample. */
  #length: number;
  /** The end of its answer, which was overwritten in the sample. */
  #end = new Int32Array();

  constructor(sample: OpenSample) {
    this.#sample = sample;
    this.#length = sample.length;
    sample.last = this;
  }

  /** Called before its answer is overwritten from `length` on. */
  keepFrom(length: number): void {
    this.#end = this.#sample.idsBetween(length, this.#length).slice();
    this.#length = length;
  }

  /** The ids of its prompt and its answer, in two parts. */
  ids(): readonly Int32Array[] {
    return [this.#sample.idsBetween(0, this.#length), this.#end];
  }
}

/** A turn that is in no sample. Only its own ids are kept, since many of them may continue each other. */
interface ExcludedTurn extends Pick<TurnArrays, "suffix" | "answer"> {
  /** The turn whose ids its prompt begins with; null if there is none. */
  readonly base: EarlierTurn | null;
}

function excludedTurn({ suffix, answer, forked }: TurnArrays, base: EarlierTurn | null): ExcludedTurn {
  return { suffix, answer, base: forked ? null : base };
}

/**
 * The ids of a prompt that continues `base` with `suffix`, as those that follow the ids of the turn `trained`. Null: they
 * are all of its ids.
 */
function idsAfterTrained(
  base: EarlierTurn,
  suffix: Int32Array,
): { readonly trained: EndedTurn | null; readonly ids: Int32Array } {
  const parts = [suffix];
  let at: EarlierTurn | null = base;
  while (at !== null && !(at instanceof EndedTurn)) {
    parts.push(at.answer, at.suffix);
    at = at.base;
  }
  return { trained: at, ids: joined(parts.reverse()) };
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const ids = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    ids.set(part, at);
    at += part.length;
  }
  return ids;
}

function grow<Kind extends Int32Array | Uint8Array | Float32Array>(from: Kind, to: Kind): Kind {
  to.set(from);
  return to;
}
