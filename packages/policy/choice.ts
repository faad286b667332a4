/**
 * One of a request's answers: what the engine samples after one prompt, as text.
 *
 * Invariants. The text never holds a special token or a stop string that was not asked to stay; the tokens hold
 * everything that was sampled, the ending token included, so ids and logprobs line up. As in vLLM, stop strings count
 * from `min_tokens` on. Choice i of a seeded request is sampled with seed + i.
 */
import type { Engine } from "./engine.ts";
import type { Generation } from "./generation.ts";
import type { SampledToken } from "./sampler.ts";
import { roomFor, type SamplingPlan } from "./sampling.ts";
import { IncrementalDecoder } from "./tokenizer.ts";

export interface Choice extends Generation {
  readonly index: number;
  readonly prompt: readonly number[];
  readonly text: string;
  /** What ended it: a stop string, or the id of a stop token; null for the model's own end or a full length. */
  readonly stopReason: string | number | null;
}

/** What one token added; the last delta of a choice may have text and no token. */
export interface Delta {
  readonly index: number;
  readonly text: string;
  readonly tokens: readonly SampledToken[];
}

export interface ChoicesRequest {
  readonly prompts: readonly (readonly number[])[];
  readonly plan: SamplingPlan;
  readonly signal: AbortSignal;
  /** Hears each delta as it comes, for a stream. */
  readonly onDelta?: (delta: Delta) => void;
}

/**
 * `plan.choices` of each prompt, numbered prompt by prompt, sampled side by side.
 * Throws vLLM's 400 when a prompt and its completion do not fit the context.
 */
export function sampleChoices(engine: Engine, request: ChoicesRequest): Promise<Choice[]> {
  const { choices } = request.plan;
  const all = request.prompts.flatMap((prompt, which) =>
    Array.from({ length: choices }, (_, nth) => sampleChoice(engine, request, prompt, which * choices + nth)),
  );
  return Promise.all(all);
}

async function sampleChoice(
  engine: Engine,
  { plan, signal, onDelta }: ChoicesRequest,
  prompt: readonly number[],
  index: number,
): Promise<Choice> {
  const text = new ChoiceText(plan);
  const generation = await engine.generate({
    ...plan,
    prompt,
    maxTokens: roomFor(plan, prompt.length, engine.contextLength),
    seed: plan.seed === null ? null : plan.seed + (index % plan.choices),
    topLogprobs: plan.topLogprobs ?? 0,
    signal,
    onToken: (token) => {
      const added = text.push(token.id);
      onDelta?.({ index, text: added, tokens: [token] });
      return text.stop !== null;
    },
  });
  const rest = text.end();
  if (rest !== "") onDelta?.({ index, text: rest, tokens: [] });
  return { ...generation, index, prompt, text: text.whole, stopReason: text.stop ?? generation.stopToken };
}

/**
 * The text of a choice as its tokens come, cut at the first stop string.
 *
 * Invariants. Text that could still become a stop string is held back, so no part of one is ever handed out, wherever
 * tokens end. What is handed out, joined, is the whole text. After a stop nothing more comes.
 */
class ChoiceText {
  /** All that was handed out. */
  whole = "";
  /** The stop string that was met; null while none was. */
  stop: string | null = null;
  readonly #plan: SamplingPlan;
  readonly #decoder = new IncrementalDecoder();
  #held = "";
  #tokens = 0;

  constructor(plan: SamplingPlan) {
    this.#plan = plan;
  }

  /** The text that is safe to show with this token. */
  push(id: number): string {
    const { stopTokenIds, keepStop, minTokens } = this.#plan;
    this.#tokens += 1;
    if (stopTokenIds.includes(id) && !keepStop) return "";
    const piece = this.#decoder.push(id);
    return this.#tokens <= minTokens ? this.#handOut(piece) : this.#cut(piece);
  }

  /** What is left when no more tokens come. */
  end(): string {
    if (this.stop !== null) return "";
    const text = this.#cut(this.#decoder.end());
    return this.stop === null ? text + this.#handOut(this.#held) : text;
  }

  #cut(piece: string): string {
    const { stops, keepStop } = this.#plan;
    const text = this.#held + piece;
    const [first] = stops
      .map((stop) => ({ stop, at: text.indexOf(stop) }))
      .filter(({ at }) => at >= 0)
      .sort((one, other) => one.at - other.at);
    if (first !== undefined) {
      this.stop = first.stop;
      return this.#handOut(text.slice(0, first.at + (keepStop ? first.stop.length : 0)));
    }
    const safe = text.length - longestBeginning(text, stops);
    this.#held = text.slice(safe);
    return this.#handOut(text.slice(0, safe));
  }

  #handOut(text: string): string {
    this.whole += text;
    return text;
  }
}

/** How many characters at the end of the text begin one of these strings without finishing it. */
export function longestBeginning(text: string, strings: readonly string[]): number {
  const lengths = strings.map((string) => {
    for (let length = Math.min(string.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(string.slice(0, length))) return length;
    }
    return 0;
  });
  return Math.max(0, ...lengths);
}
