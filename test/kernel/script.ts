/**
 * The script of the model outside workerd. A test inside workerd cannot pass it a function, so the model's name is the
 * script, as JSON. Plain data: read by the model in Node and written by tests in workerd.
 */
import type { ToolDefinition } from "../../src/contract/messages.ts";
import type { Reply } from "../fakes/completion-body.ts";
import type { EngineKind } from "../fakes/probe-reply.ts";
import type { Fault } from "../fakes/scripted-model.ts";

/**
 * The first `times` requests of one idempotency key fail (absent: all of them); the next ones get `reply`. In a fault
 * or a reply, `{authorization}` becomes the authorization of the request, and `{base64}` the same in base64, because
 * some servers repeat the key they were sent.
 */
export interface Failing {
  readonly fault: Fault;
  readonly times?: number;
  /** Only requests fail whose body contains this text as JSON, and not the other one; absent: all. */
  readonly holds?: string;
  readonly lacks?: string;
  /** Only rollouts whose attempt is below this fail; absent: all. */
  readonly attempts?: number;
  readonly reply?: Reply;
}

/** One entry for each turn. */
export type Turns = readonly (Reply | Failing)[];

export interface Script {
  /** Separates the requests of one test from those of another with the same script. */
  readonly salt: string;
  readonly turns: Turns;
  /** For rollouts whose question contains the word. */
  readonly when?: Readonly<Record<string, Turns>>;
  /** The first turn of each slot of a group, instead of `turns`. */
  readonly slots?: readonly Reply[];
  /** The other slots of a group are played by the random policy of a validation, with ids of tool calls by turn. */
  readonly random?: boolean;
  /** It judges groups: the longest of the attempts gets 1, the others their fraction of its length. */
  readonly ranks?: boolean;
  /** With `tokens`, the engine that a probe finds; absent: an exact one. */
  readonly engine?: EngineKind;
  /** It answers with token ids and logprobs, as training needs them. */
  readonly tokens?: boolean;
  /** How `POST /tokenize` fails: the first `times` requests of one idempotency key; absent: it does not. */
  readonly tokenize?: Failing;
  /** It answers each request of a rollout only after it is released. */
  readonly held?: boolean;
}

const IN_QUESTION = "script:";

/** A question that is its own script, for tests with more scripts than a model's name can hold. */
export function questionScript(turns: Turns): string {
  return `${IN_QUESTION}${JSON.stringify(turns)}`;
}

/** The script in such a question; null for any other. */
export function scriptOf(question: string): Turns | null {
  return question.startsWith(IN_QUESTION) ? JSON.parse(question.slice(IN_QUESTION.length)) : null;
}

/** One request that the model got. */
export interface Seen {
  readonly at: number;
  /** Such as /v1/chat/completions. */
  readonly path: string;
  readonly idempotency_key: string;
  readonly authorization: string;
  readonly messages: number;
  readonly tools: readonly ToolDefinition[];
  /** The other members of its body. */
  readonly sampling: Readonly<Record<string, unknown>>;
}

/**
 * Requests the list of what `requests_of` got, as a completion whose content is the list, once it has `at_least` so
 * many.
 */
export interface Inquiry {
  readonly requests_of: string;
  readonly at_least: number;
}

/**
 * Sent as a completion: releases the next request with this key of a held script, already waiting or later. `fault`:
 * its fault.
 */
export interface Release {
  readonly idempotency_key: string;
  readonly fault?: Fault;
}

/** Sent as a completion: from now on `{"named": keep}` is the name of this script. */
export interface Kept {
  readonly keep: string;
  readonly script: Script;
}

/** A script that was kept, as the name of a model. */
export interface Named {
  readonly named: string;
}

export function script(
  turns: Turns,
  when?: Script["when"],
  more: Pick<Script, "slots" | "random" | "ranks" | "tokens" | "engine" | "tokenize" | "held"> = {},
): string {
  const salt = crypto.randomUUID().slice(0, 8);
  return JSON.stringify({ salt, turns, ...(when && { when }), ...more } satisfies Script);
}
