/**
 * All turns of a rollout in a few numbers each, for the timeline: some 20 bytes per turn, however long its texts are.
 */
import type { OutlineTurn } from "../../../contract/turns.ts";

/** How many turns are named below the timeline. */
const NAMED = 5;
const MARKED = 12;

export interface OutlineData {
  /** Milliseconds from the rollout's start: when each turn was answered, and how long that took. */
  readonly at: Float64Array;
  readonly took: Float64Array;
  /** 1 if something in the turn failed: an attempt of the call, or a tool call. */
  readonly failed: Uint8Array;
  /** Longest first. */
  readonly slowest: readonly { readonly index: number; readonly ms: number }[];
  readonly failures: readonly { readonly index: number; readonly why: string }[];
  readonly failures_left_out: number;
  /** From the first start of a call to the last answer. */
  readonly from: number;
  readonly to: number;
}

export class OutlineBuild {
  read = 0;
  readonly #at: Float64Array;
  readonly #took: Float64Array;
  readonly #failed: Uint8Array;
  readonly #failures: { index: number; why: string }[] = [];
  #failures_left_out = 0;
  /** Whether the last added turn records which of its calls failed: then the text of its results is not checked. */
  #recorded = false;

  constructor(count: number) {
    this.#at = new Float64Array(count);
    this.#took = new Float64Array(count);
    this.#failed = new Uint8Array(count);
  }

  add({ index, after, at_ms, latency_ms, calls, failed, tool_calls_failed }: OutlineTurn): void {
    this.read = index + 1;
    if (index >= this.#at.length) return;
    this.#at[index] = at_ms;
    this.#took[index] = latency_ms;
    // Results are shown next to the calls they answer, in the turn before; if it continues another one, in this turn.
    const shown = after === undefined ? Math.max(0, index - 1) : index;
    if (failed > 0 && !this.#recorded) this.#mark(shown, `${failed} results read like errors`);
    this.#recorded = tool_calls_failed !== undefined;
    if (calls > 1) this.#mark(index, `the model was called ${calls} times`);
    if (tool_calls_failed)
      this.#mark(index, `${tool_calls_failed} tool ${tool_calls_failed === 1 ? "call" : "calls"} failed`);
  }

  #mark(index: number, why: string): void {
    this.#failed[index] = 1;
    const last = this.#failures.at(-1);
    if (last?.index === index) last.why = `${last.why}, ${why}`;
    else if (this.#failures.length < MARKED) this.#failures.push({ index, why });
    else this.#failures_left_out += 1;
  }

  end(): OutlineData {
    const order = Array.from(this.#took.keys()).sort((a, b) => (this.#took[b] ?? 0) - (this.#took[a] ?? 0));
    const slowest = order.slice(0, NAMED).map((index) => ({ index, ms: this.#took[index] ?? 0 }));
    let [from, to] = [0, 1];
    for (const [index, at] of this.#at.entries()) {
      from = Math.min(from, at - (this.#took[index] ?? 0));
      to = Math.max(to, at);
    }
    const [failures, failures_left_out] = [this.#failures, this.#failures_left_out];
    return { at: this.#at, took: this.#took, failed: this.#failed, slowest, failures, failures_left_out, from, to };
  }
}

/** The turn that was answered at this time, or the first one after it. */
export function turnAt({ at }: Pick<OutlineData, "at">, ms: number): number {
  let [low, high] = [0, Math.max(0, at.length - 1)];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((at[middle] ?? 0) < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
