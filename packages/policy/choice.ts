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

/** What one piece of text brought. */
export interface Released {
  /** Safe to show. */
  readonly text: string;
  /** The stop string that was met; null while none was. */
  readonly stop: string | null;
}

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

interface ChoicesRequest {
  readonly prompts: readonly (readonly number[])[];
  readonly plan: SamplingPlan;
  readonly signal: AbortSignal;
  /** Told as it comes, for a stream. */
  readonly onDelta?: ((delta: Delta) => void) | undefined;
}

/**
 * `plan.choices` of each prompt, numbered prompt by prompt, sampled side by side.
 * Throws vLLM's 400 when a prompt and its completion do not fit the context.
 */
export function sampleChoices(engine: Engine, request: ChoicesRequest): Promise<Choice[]> {
  const { prompts, plan } = request;
  const all = prompts.flatMap((prompt, which) =>
    Array.from({ length: plan.choices }, (_, nth) => {
      const seed = plan.seed === null ? null : plan.seed + nth;
      return sampleChoice(engine, request, { prompt, seed, index: which * plan.choices + nth });
    }),
  );
  return Promise.all(all);
}

interface One {
  readonly prompt: readonly number[];
  readonly seed: number | null;
  readonly index: number;
}

async function sampleChoice(engine: Engine, request: ChoicesRequest, one: One): Promise<Choice> {
  const { plan, signal, onDelta } = request;
  const { prompt, seed, index } = one;
  const text = new ChoiceText(plan);
  const generation = await engine.generate({
    ...plan,
    prompt,
    maxTokens: roomFor(plan, prompt.length, engine.contextLength),
    seed,
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
  return {
    ...generation,
    index,
    prompt,
    text: text.whole,
    stopReason: text.stop ?? generation.stopToken,
  };
}

/** Tokens in, text out. */
class ChoiceText {
  whole = "";
  stop: string | null = null;
  readonly #plan: SamplingPlan;
  readonly #decoder = new IncrementalDecoder();
  readonly #stops: StopText;
  #tokens = 0;

  constructor(plan: SamplingPlan) {
    this.#plan = plan;
    this.#stops = new StopText(plan.stops, plan.keepStop);
  }

  push(id: number): string {
    this.#tokens += 1;
    if (this.#ends(id)) return "";
    const piece = this.#decoder.push(id);
    if (this.#tokens <= this.#plan.minTokens) return this.#add(piece);
    const { text, stop } = this.#stops.push(piece);
    this.stop = stop;
    return this.#add(text);
  }

  end(): string {
    if (this.stop !== null) return "";
    const { text, stop } = this.#stops.push(this.#decoder.end());
    this.stop = stop;
    return this.#add(stop === null ? text + this.#stops.end() : text);
  }

  #ends(id: number): boolean {
    return this.#plan.stopTokenIds.includes(id) && !this.#plan.keepStop;
  }

  #add(text: string): string {
    this.whole += text;
    return text;
  }
}

/**
 * The text of one generation as it comes, cut at the first stop string.
 *
 * Invariants. Text that could still become a stop string is held back, so no part of one is ever handed out, wherever
 * tokens and chunks end. What is handed out, joined, is the whole text. After a stop nothing more comes.
 */
export class StopText {
  readonly #stops: readonly string[];
  readonly #keepStop: boolean;
  #held = "";

  constructor(stops: readonly string[], keepStop: boolean) {
    this.#stops = stops;
    this.#keepStop = keepStop;
  }

  push(piece: string): Released {
    const text = this.#held + piece;
    const met = this.#firstStop(text);
    if (met !== null) {
      this.#held = "";
      const end = met.at + (this.#keepStop ? met.stop.length : 0);
      return { text: text.slice(0, end), stop: met.stop };
    }
    const safe = text.length - longestBeginning(text, this.#stops);
    this.#held = text.slice(safe);
    return { text: text.slice(0, safe), stop: null };
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #firstStop(text: string): { at: number; stop: string } | null {
    const met = this.#stops.map((stop) => ({ at: text.indexOf(stop), stop })).filter(({ at }) => at >= 0);
    return met.sort((a, b) => a.at - b.at)[0] ?? null;
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
