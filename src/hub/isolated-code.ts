/**
 * Environment code in an isolate of its own, from a bundle that has its own copy of the library (core/protocol/served.ts).
 *
 * Invariants. The code has no network and no bindings: it reaches outside only by the functions of its host, within its
 * declared needs, which are checked here. Its events are those of its own rollout, and its errors count as its own. Isolates are named by organisation and digest, so organisations share none. A stub
 * belongs to the invocation that made it, so each call makes one. If the isolate fails, its rollout fails; a passing fault
 * of the platform below is thrown.
 */

import {
  EnvError,
  environmentFailure,
  isError,
  messageOf,
  nameOf,
  type SerializedError,
  serializeError,
} from "../contract/errors.ts";
import type { JsonObject } from "../contract/json.ts";
import { mustDeclare, requireFetch } from "../core/environments/capabilities.ts";
import type { FetchOptions, Need } from "../core/environments/contract.ts";
import type {
  EnvironmentCode,
  EnvironmentDescription,
  LoadableEnvironment,
  OfferedTools,
  Opening,
  Performed,
  Player,
  RolloutHost,
  ScoringHost,
} from "../core/protocol/environment-code.ts";
import { ENVIRONMENT_PROTOCOL } from "../core/protocol/environment-code.ts";
import type {
  Answer,
  ServedEnvironment,
  ServedPlayer,
  ServingRollout,
  ServingScores,
} from "../core/protocol/served.ts";
import { redact } from "../core/redact.ts";
import { advance, type HookEffect, nextEffect, type Rollout } from "../core/rollout/rollout.ts";
import { WORK_LIMITS } from "../core/rubrics/work.ts";
import type { StepTimer, TimeUp } from "../core/step-timer.ts";
import { isPassing } from "../kernel/kit/storage-faults.ts";

/** The code of one published version. */
export interface Bundle {
  readonly digest: string;
  /** One ES module that exports the entry of `environmentEntry` (src/local/environment-bundle.ts). */
  readonly text: () => Promise<string>;
}

/** Of one call; on one machine they are not enforced. */
const LIMITS_OF_ISOLATE = { cpuMs: 10_000, subRequests: 1000 };
const COMPATIBILITY_DATE = "2026-09-01";
/** Without it the code would get Node's modules, and more of the platform. */
const COMPATIBILITY_FLAGS = ["no_nodejs_compat"];

/** The code of a bundle. Rejects with EnvError if it cannot be loaded, or speaks another protocol. */
export async function isolatedEnvironment(env: Env, orgId: string, bundle: Bundle): Promise<LoadableEnvironment> {
  const isolate = new Isolate(env, orgId, bundle);
  const { args, needs } = await isolate.ask((code) => code.outline());
  return {
    args,
    needs,
    checkArguments: (given) => isolate.ask((code) => code.checkArguments(given as JsonObject)),
    load: async (given) => {
      const description = await isolate.ask((code) => code.describe(given));
      const { protocol } = description;
      if (protocol === ENVIRONMENT_PROTOCOL) return codeIn(isolate, given, description);
      throw new EnvError(`its code speaks protocol ${protocol}, and this deployment speaks ${ENVIRONMENT_PROTOCOL}`);
    },
  };
}

class Isolate {
  readonly env: Env;
  readonly #name: string;
  readonly #text: Bundle["text"];

  constructor(env: Env, orgId: string, { digest, text }: Bundle) {
    this.env = env;
    this.#name = `${orgId}:${digest}`;
    this.#text = text;
  }

  /** Rejects with EnvError if the isolate failed. */
  async ask<T>(call: (code: ServedEnvironment) => Promise<T>): Promise<T> {
    try {
      return await call(this.code);
    } catch (thrown) {
      if (isPassing(this.env, thrown)) throw thrown;
      throw new EnvError(`its isolate failed: ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  get code(): ServedEnvironment {
    const worker = this.env.LOADER.get(this.#name, async () => ({
      compatibilityDate: COMPATIBILITY_DATE,
      compatibilityFlags: COMPATIBILITY_FLAGS,
      mainModule: "environment.js",
      modules: { "environment.js": await this.#text() },
      env: {},
      globalOutbound: null,
      limits: LIMITS_OF_ISOLATE,
    }));
    const entry: unknown = worker.getEntrypoint();
    return entry as ServedEnvironment;
  }
}

function codeIn(isolate: Isolate, args: JsonObject, description: EnvironmentDescription): EnvironmentCode {
  const { needs } = description;
  return {
    description,
    task: async (source) => {
      try {
        return await isolate.ask((code) => code.task(args, source));
      } catch (thrown) {
        if (!isError(thrown, EnvError)) throw thrown;
        return { fault: { index: source.index, column: "", message: thrown.message } };
      }
    },
    tools: async (rollout) => {
      const tools: OfferedTools | SerializedError = await isolate
        .ask((code) => code.tools(args, rollout))
        .catch(asData);
      return tools;
    },
    play: async (opening, host) => new IsolatedPlayer(isolate, { args, opening, host, needs }),
    score: async (group, host) => {
      const { work } = host;
      const limit = work?.limit ?? WORK_LIMITS.scoringGroupSteps;
      const { steps, ...scored } = await isolate.ask((code) =>
        code.score(args, group, servingScores(host, needs), limit),
      );
      work?.count(steps);
      return { ...scored, records: redact(scored.records, Object.values(group.secrets)) };
    },
    // What an isolate holds goes with it.
    tearDown: async () => [],
  };
}

function asData(thrown: unknown): SerializedError {
  if (isError(thrown, EnvError)) return serializeError(thrown);
  throw thrown;
}

/** Events of effects, besides `failed` and `closed`. */
const EVENTS: readonly Performed["event"]["type"][] = ["set_up", "stopped", "replied", "prompt_too_long", "timed_out"];

/** An effect that the isolate performed before it was asked for, and the rollout on which it did. */
interface Ahead {
  readonly before: Rollout;
  readonly performed: Performed;
}

interface PlayerParts {
  readonly args: JsonObject;
  readonly opening: Opening;
  readonly host: RolloutHost;
  readonly needs: readonly Need[];
}

class IsolatedPlayer implements Player {
  readonly #isolate: Isolate;
  readonly #parts: PlayerParts;
  #served: (ServedPlayer & Partial<Disposable>) | null = null;
  #ahead: Ahead[] = [];

  constructor(isolate: Isolate, parts: PlayerParts) {
    this.#isolate = isolate;
    this.#parts = parts;
  }

  async perform(effect: HookEffect, rollout: Rollout): Promise<Performed> {
    const known = this.#ahead.shift();
    const performed = known !== undefined && isSame(known.before, rollout) ? known.performed : null;
    if (performed !== null) return this.#given(effect, performed);
    this.#ahead = [];
    try {
      const [first, ...others] = await this.#isolate.ask(() => this.#ask(effect, rollout));
      if (first === undefined) throw new EnvError("it performed nothing");
      let before = advance(rollout, first.event);
      for (const each of others) {
        this.#ahead.push({ before, performed: each });
        before = advance(before, each.event);
      }
      return this.#given(effect, first);
    } catch (thrown) {
      this.#letGo();
      return { event: this.#failed(effect, rollout, asData(thrown)), tools: null };
    }
  }

  async dispose(): Promise<SerializedError | null> {
    const served = this.#served;
    if (served === null) return null;
    try {
      return await this.#isolate.ask(() => served.dispose(servingRollout(this.#parts)));
    } catch (thrown) {
      return asData(thrown);
    } finally {
      this.#letGo();
    }
  }

  async #ask(effect: HookEffect, rollout: Rollout): Promise<readonly Performed[]> {
    const { args, opening } = this.#parts;
    const host = servingRollout(this.#parts);
    const performed = async () => {
      if (this.#served !== null) return await this.#served.perform(host, effect, rollout);
      const begun = await this.#isolate.code.play(args, opening, host, effect, rollout);
      this.#served = begun;
      return begun.performed;
    };
    return redact(await performed(), Object.values(opening.secrets)).map((each) => this.#checked(each));
  }

  /** Throws EnvError for an event that no effect has. Times and kinds of failure are the platform's. */
  #checked({ event, tools }: Performed): Performed {
    if (event.type === "closed") return { event: { ...event, at: this.#parts.host.now() }, tools };
    if (event.type === "failed") return { event: { ...event, failure: environmentFailure(event.error) }, tools };
    if (EVENTS.includes(event.type)) return { event, tools };
    throw new EnvError(`it answered with an event of the platform, ${event.type}`);
  }

  #given(effect: HookEffect, performed: Performed): Performed {
    if (effect.kind === "close") this.#letGo();
    return performed;
  }

  #failed({ kind }: HookEffect, { state }: Rollout, error: SerializedError): Performed["event"] {
    if (kind !== "close") return { type: "failed", failure: "environment", error };
    return { type: "closed", state, error, cleanup_errors: [], at: this.#parts.host.now() };
  }

  #letGo(): void {
    this.#served?.[Symbol.dispose]?.();
    this.#served = null;
    this.#ahead = [];
  }
}

/** Whether the rollout is the expected one: not cancelled or stopped meanwhile. Both come from the same events. */
function isSame(expected: Rollout, rollout: Rollout): boolean {
  const { turns, ...fields } = expected;
  const isAsExpected = Object.entries(fields).every(([name, value]) => Reflect.get(rollout, name) === value);
  return (
    isAsExpected && turns.length === rollout.turns.length && nextEffect(expected).kind === nextEffect(rollout).kind
  );
}

/** `timer` begins the time of a step. */
function serving<Step>(fetch: RolloutHost["fetch"], needs: readonly Need[], timer: (step: Step) => StepTimer) {
  const ends = new Map<number, () => void>();
  return {
    fetch: (url: string, { method, headers, body, timeoutMs, sign }: FetchOptions) =>
      answered(() => {
        requireFetch(needs, url, { ...(sign && { sign }) });
        const options = { method, headers, body, timeoutMs, sign };
        return fetch(url, Object.fromEntries(Object.entries(options).filter(([, given]) => given !== undefined)));
      }),
    late: async (number: number, step: Step): Promise<TimeUp | null> => {
      const { over, stop } = timer(step);
      const { promise: ended, resolve } = Promise.withResolvers<null>();
      ends.set(number, () => {
        stop();
        resolve(null);
      });
      return await Promise.race([over, ended]);
    },
    ended: async (number: number): Promise<void> => {
      ends.get(number)?.();
      ends.delete(number);
    },
  };
}

function servingRollout({ host, needs }: PlayerParts): ServingRollout {
  const { fetch, sql, unrepeatable, timer } = host;
  return {
    ...serving(fetch, needs, ({ stage, what }: Parameters<ServingRollout["late"]>[1]) => timer(stage, what)),
    sql: (place, query, params) =>
      answered(async () => {
        mustDeclare("sql", needs);
        return await sql.exec(place, query, params);
      }),
    unrepeatable: async (tool) => await unrepeatable(tool),
  };
}

function servingScores({ fetch, timer }: ScoringHost, needs: readonly Need[]): ServingScores {
  return serving(fetch, needs, timer);
}

async function answered<T>(call: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await call() };
  } catch (thrown) {
    return { error: { error: nameOf(thrown), message: messageOf(thrown) } };
  }
}
