/**
 * What the model outside workerd is told to say. A test inside workerd cannot hand it a function, so the model's name
 * is the script, as JSON. Plain data: read by the model in Node and written by tests in workerd.
 */
import type { ToolDefinition } from "../../src/contract/messages.ts";
import type { Reply } from "../fakes/completion-body.ts";
import type { EngineKind } from "../fakes/probe-reply.ts";
import type { Fault } from "../fakes/scripted-model.ts";

/**
 * The first `times` requests of one idempotency key fail (absent: all of them), the next get `reply`. `{authorization}` in
 * a fault or a reply becomes what the request sent as such, `{base64}` the same in base64: there are servers that repeat
 * the key they are sent.
 */
export interface Failing {
  readonly fault: Fault;
  readonly times?: number;
  /** Only requests whose body holds this text as JSON, and not that one, fail; absent: all. */
  readonly holds?: string;
  readonly lacks?: string;
  /** Only rollouts whose attempt is below this fail; absent: all. */
  readonly attempts?: number;
  readonly reply?: Reply;
}

/** One entry a turn. */
export type Turns = readonly (Reply | Failing)[];

export interface Script {
  /** Keeps the requests of one test apart from those of another with the same words. */
  readonly salt: string;
  readonly turns: Turns;
  /** For rollouts whose question holds the word. */
  readonly when?: Readonly<Record<string, Turns>>;
  /** The first turn of each slot of a group, in place of `turns`. */
  readonly slots?: readonly Reply[];
  /** It judges groups: the longest of the attempts it is shown gets 1, the others their share of its length. */
  readonly ranks?: boolean;
  /** With `tokens`, what a probe meets; absent: an engine that is exact. */
  readonly engine?: EngineKind;
  /** It answers with token ids and logprobs, as training needs them. */
  readonly tokens?: boolean;
  /** It answers each request of a rollout once it is released, and not before. */
  readonly held?: boolean;
}

const IN_QUESTION = "script:";

/** A question that is its own script, for more of them than one model's name can hold. */
export function questionScript(turns: Turns): string {
  return `${IN_QUESTION}${JSON.stringify(turns)}`;
}

/** What such a question scripts; null for any other. */
export function scriptOf(question: string): Turns | null {
  return question.startsWith(IN_QUESTION) ? JSON.parse(question.slice(IN_QUESTION.length)) : null;
}

/** One request the model got. */
export interface Seen {
  readonly at: number;
  readonly idempotency_key: string;
  readonly authorization: string;
  readonly messages: number;
  readonly tools: readonly ToolDefinition[];
  /** What else its body holds. */
  readonly sampling: Readonly<Record<string, unknown>>;
}

/** Asked as a completion whose content is the list: what `requests_of` was asked, once it is `at_least` so much. */
export interface Inquiry {
  readonly requests_of: string;
  readonly at_least: number;
}

/** Asked as a completion: releases the next request with this key of a held script, come or to come. `fault`: what it meets. */
export interface Release {
  readonly idempotency_key: string;
  readonly fault?: Fault;
}

export function script(
  turns: Turns,
  when?: Script["when"],
  more: Pick<Script, "slots" | "ranks" | "tokens" | "engine" | "held"> = {},
): string {
  const salt = crypto.randomUUID().slice(0, 8);
  return JSON.stringify({ salt, turns, ...(when && { when }), ...more } satisfies Script);
}
