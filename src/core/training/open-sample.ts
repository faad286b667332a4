/**
 * One training sample while turns are still being added to it: token ids, what of them was sampled, with which
 * logprobs, by which version.
 *
 * Invariants. The arrays are unshifted and of one length. Context has mask 0 and logprob 0; sampled tokens have mask 1
 * and the engine's logprob, verbatim; the spans cover exactly these, in order.
 */

/** Half-open, over the token ids. */
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
  /** Natural logarithms, by the weights that sampled; 0 where the mask is. */
  readonly logprobs: Float32Array<ArrayBuffer>;
  readonly weight_versions: readonly VersionSpan[];
  /** The oldest and the newest version that had a part in it. */
  readonly policy_version_start: number;
  readonly policy_version_end: number;
  readonly trainable_tokens: number;
}

const FIRST_CAPACITY = 64;

export class OpenSample {
  length = 0;
  /** Where the last answer begins. */
  answerStart = 0;
  /** Something of it was overwritten. */
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

  /** Whether anything in it was sampled. */
  get trains(): boolean {
    return this.#spans.length > 0;
  }

  /** How many of its first tokens are those of `prompt`. */
  commonPrefix(prompt: Int32Array): number {
    const most = Math.min(this.length, prompt.length);
    let at = 0;
    while (at < most && this.#ids[at] === prompt[at]) at += 1;
    return at;
  }

  /** Takes everything from `length` on back. */
  cutTo(length: number): void {
    this.#mask.fill(0, length, this.length);
    this.#logprobs.fill(0, length, this.length);
    this.#spans = this.#spans
      .filter(({ start }) => start < length)
      .map((span) => ({ ...span, end: Math.min(span.end, length) }));
    this.length = length;
    this.realigned = true;
  }

  /** Its ids, and `more` after them. */
  idsWith(more: Int32Array): Int32Array {
    const ids = new Int32Array(this.length + more.length);
    ids.set(this.#ids.subarray(0, this.length));
    ids.set(more, this.length);
    return ids;
  }

  /** `dispatched`: the version its rollout was begun for. */
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
    this.#ids = grown(this.#ids, new Int32Array(capacity));
    this.#mask = grown(this.#mask, new Uint8Array(capacity));
    this.#logprobs = grown(this.#logprobs, new Float32Array(capacity));
  }
}

function grown<Kind extends Int32Array | Uint8Array | Float32Array>(from: Kind, to: Kind): Kind {
  to.set(from);
  return to;
}
