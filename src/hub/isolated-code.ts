/**
 * Environment code in an isolate of its own, from a bundle that has its own copy of the library (core/protocol/served.ts).
 *
 * Invariants. The code may be malicious. It has no network and no bindings: it reaches outside only by the functions of
 * its host, within its declared needs (host-calls.ts). What it answers is data, measured and checked (replies.ts), and
 * its errors count as its own. Isolates are named by organisation and digest, so organisations share none. A stub belongs
 * to the invocation that made it, so each call makes one. If the isolate fails, or does not answer in time, its rollout
 * fails, or its scores are null; only a passing fault of the platform below is thrown, also if its code cannot be read.
 */

import {
  EnvError,
  endsTheWhole,
  environmentFailure,
  isError,
  messageOf,
  RolloutError,
  type SerializedError,
  serializeError,
} from "../contract/errors.ts";
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Need } from "../core/environments/contract.ts";
import type {
  EnvironmentCode,
  EnvironmentDescription,
  GroupToScore,
  LoadableEnvironment,
  Opening,
  Performed,
  Player,
  RolloutHost,
  ScoringHost,
} from "../core/protocol/environment-code.ts";
import { ENVIRONMENT_PROTOCOL } from "../core/protocol/environment-code.ts";
import type { ServedEnvironment, ServedPlayer } from "../core/protocol/served.ts";
import { redact } from "../core/redact.ts";
import { advance, type HookEffect, nextEffect, type Rollout } from "../core/rollout/rollout.ts";
import { type AskedScores, unscoredRecord } from "../core/rubrics/score.ts";
import { WORK_LIMITS } from "../core/rubrics/work.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { isPassing } from "../kernel/kit/storage-faults.ts";
import {
  readDescription,
  readError,
  readFault,
  readOutline,
  readPerformed,
  readScores,
  readTask,
  readTools,
} from "./replies.ts";

/** The code of one published version. */
export interface Bundle {
  readonly digest: string;
  /** One ES module that exports the entry of `environmentEntry` (src/local/environment-bundle.ts). */
  readonly text: () => Promise<string>;
}

/** Of one call; on one machine they are not enforced. */
const LIMITS_OF_ISOLATE = { cpuMs: 10_000, subRequests: 1000 };
const COMPATIBILITY_DATE = "2026-09-01";
const LIMIT_EXCEEDED = /exceeded (?:its )?(?:memory|CPU time) limit/i;
/** Without it the code would get Node's modules, and more of the platform. */
const COMPATIBILITY_FLAGS = ["no_nodejs_compat"];

/** The code of a bundle. Rejects with EnvError if it cannot be loaded, or speaks another protocol. */
export async function isolatedEnvironment(env: Env, orgId: string, bundle: Bundle): Promise<LoadableEnvironment> {
  const isolate = new Isolate(env, orgId, bundle, await import("./host-calls.ts"));
  const { args, needs } = readOutline(await isolate.askSoon((code) => code.outline()));
  return {
    args,
    needs,
    checkArguments: async (given) =>
      readFault(await isolate.askSoon((code) => code.checkArguments(given as JsonObject))),
    load: async (given) => {
      const reply = await isolate.askSoon((code) => code.describe(given));
      return codeIn(isolate, given, readDescription(reply, ENVIRONMENT_PROTOCOL));
    },
  };
}

/** A passing fault of the platform below, or code that ended its isolate: the caller cannot tell which. */
class IsolateLostError extends Error {
  override readonly name = "IsolateLostError";
}

interface Unread {
  readonly times: number;
  readonly thrown: unknown;
}

/** The invocation that read the code ended before it had it, or the store does not answer. */
class CodeUnreadError extends Error {
  override readonly name = "CodeUnreadError";
  /** As the runtime marks passing errors. */
  readonly retryable = true;
}

const NEVER_UNREAD: Unread = { times: 0, thrown: null };
/** The runtime keeps a failed load under the isolate's name. So after each, the isolate gets another name. */
const unread = new LruCache<Unread>(256);
/** By names of isolates: whether their code is being read. It stays so if the invocation that reads it ends. */
const reading = new LruCache<boolean>(256);

/** Loaded at the first isolate: it needs workerd, and scripts in Node read the operations of the hub. */
type HostCalls = typeof import("./host-calls.ts");

class Isolate {
  readonly env: Env;
  readonly host: HostCalls;
  readonly #name: string;
  readonly #text: Bundle["text"];

  constructor(env: Env, orgId: string, { digest, text }: Bundle, host: HostCalls) {
    this.env = env;
    this.host = host;
    this.#name = `${orgId}:${digest}`;
    this.#text = text;
  }

  /** Rejects with EnvError if the isolate failed, and as `givenUp` or reading its code if that is first. */
  async ask<T>(call: (code: ServedEnvironment) => Promise<T>, givenUp: Promise<never>): Promise<T> {
    const { times } = this.#unread;
    try {
      return await Promise.race([call(this.#code(times)), givenUp]);
    } catch (thrown) {
      if (reading.get(this.#nameAfter(times)) === true) {
        const unanswered = new CodeUnreadError("its code could not be read", { cause: thrown });
        unread.set(this.#name, { times: times + 1, thrown: unanswered });
      }
      if (this.#unread.times > times) throw this.#unread.thrown;
      if (isError(thrown, RolloutError)) throw thrown;
      if (this.#isPassing(thrown)) throw new IsolateLostError(messageOf(thrown), { cause: thrown });
      throw new EnvError(`its isolate failed: ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** For a call that needs nothing of the platform: it may take as long as a build. */
  async askSoon<T>(call: (code: ServedEnvironment) => Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const error = new EnvError(`its isolate did not answer within ${LIMITS.buildMs / 1000} s`);
    const timer = setTimeout(() => reject(error), LIMITS.buildMs);
    try {
      return await this.ask(call, late);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The code itself can throw any text, but the runtime marks its errors; and an exceeded limit is the code's fault. */
  #isPassing(thrown: unknown): boolean {
    if (!isError(thrown, Error)) return false;
    const isItsOwn = Reflect.get(thrown, "remote") === true || LIMIT_EXCEEDED.test(thrown.message);
    return !isItsOwn && isPassing(this.env, thrown);
  }

  get #unread(): Unread {
    return unread.get(this.#name) ?? NEVER_UNREAD;
  }

  /** `times`: how often reading its code had failed. */
  #code(times: number): ServedEnvironment {
    const worker = this.env.LOADER.get(this.#nameAfter(times), async () => ({
      compatibilityDate: COMPATIBILITY_DATE,
      compatibilityFlags: COMPATIBILITY_FLAGS,
      mainModule: "environment.js",
      modules: { "environment.js": await this.#read(times) },
      env: {},
      globalOutbound: null,
      limits: LIMITS_OF_ISOLATE,
    }));
    const entry: unknown = worker.getEntrypoint();
    return entry as ServedEnvironment;
  }

  async #read(times: number): Promise<string> {
    const name = this.#nameAfter(times);
    reading.set(name, true);
    try {
      return await this.#text();
    } catch (thrown) {
      unread.set(this.#name, { times: times + 1, thrown });
      throw thrown;
    } finally {
      reading.set(name, false);
    }
  }

  #nameAfter(times: number): string {
    return times === 0 ? this.#name : `${this.#name}:${times}`;
  }
}

function codeIn(isolate: Isolate, args: JsonObject, description: EnvironmentDescription): EnvironmentCode {
  return {
    description,
    task: async (source) => {
      try {
        const reply = await isolate.askSoon((code) => code.task(args, source));
        return readTask(reply, source.index, description);
      } catch (thrown) {
        if (!isError(thrown, EnvError)) throw thrown;
        const { message } = serializeError(thrown);
        return { fault: { index: source.index, column: "", message } };
      }
    },
    tools: async (rollout) => {
      try {
        return readTools(await isolate.askSoon((code) => code.tools(args, rollout)));
      } catch (thrown) {
        return asData(thrown);
      }
    },
    play: async (opening, host) => new IsolatedPlayer(isolate, { args, opening, host, needs: description.needs }),
    score: async (group, host) => {
      try {
        return await scoreIn(isolate, { args, group, host, description });
      } catch (thrown) {
        if (!isError(thrown, RolloutError)) throw thrown;
        const records = group.members.map((member) => unscoredRecord(member, thrown));
        return withoutSecrets({ records, pending: [], characters: 0 }, group);
      }
    },
    tearDown: async () => [],
  };
}

interface Scoring {
  readonly args: JsonObject;
  readonly group: GroupToScore;
  readonly host: ScoringHost;
  readonly description: EnvironmentDescription;
}

async function scoreIn(isolate: Isolate, { args, group, host, description }: Scoring): Promise<AskedScores> {
  const { work, hash } = host;
  const limit = work?.limit ?? WORK_LIMITS.scoringGroupSteps;
  const { serving, givenUp, end } = isolate.host.hostScores(host, description.needs);
  try {
    const reply = await isolate.ask((code) => code.score(args, group, serving, limit), givenUp);
    const { steps, ...scored } = readScores(reply, { ...group, description, hash });
    work?.count(steps);
    return withoutSecrets(scored, group);
  } finally {
    end();
  }
}

function withoutSecrets(scored: AskedScores, { secrets }: GroupToScore): AskedScores {
  return { ...scored, records: redact(scored.records, Object.values(secrets)) };
}

function asData(thrown: unknown): SerializedError {
  if (isError(thrown, RolloutError)) return serializeError(thrown);
  throw thrown;
}

const STAGES = { setup: "setup", reply: "turn", close: "cleanup" } as const;

const TIMED_OUT = { type: "timed_out" } as const;

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
      const [first, ...others] = await this.#ask(effect, rollout);
      if (first === undefined) throw new EnvError("it performed nothing");
      let before = advance(rollout, first.event);
      for (const each of others) {
        this.#ahead.push({ before, performed: each });
        before = advance(before, each.event);
      }
      return this.#given(effect, first);
    } catch (thrown) {
      this.#letGo();
      const event =
        effect.kind !== "close" && endsTheWhole(thrown) ? TIMED_OUT : this.#failed(effect, rollout, asData(thrown));
      return { event: redact(event, this.#secrets), tools: null };
    }
  }

  async dispose(): Promise<SerializedError | null> {
    const served = this.#served;
    if (served === null) return null;
    const { host, needs } = this.#parts;
    const { serving, givenUp, end } = this.#isolate.host.hostRollout(host, needs, { turns: [] }, "cleanup");
    try {
      const reply = await this.#isolate.ask(() => served.dispose(serving), givenUp);
      return redact(readError(reply), this.#secrets);
    } catch (thrown) {
      return redact(asData(thrown), this.#secrets);
    } finally {
      end();
      this.#letGo();
    }
  }

  get #secrets(): readonly string[] {
    return Object.values(this.#parts.opening.secrets);
  }

  async #ask(effect: HookEffect, rollout: Rollout): Promise<readonly Performed[]> {
    const { args, opening, host, needs } = this.#parts;
    const { serving, givenUp, end } = this.#isolate.host.hostRollout(host, needs, rollout, STAGES[effect.kind]);
    const performed = async (code: ServedEnvironment): Promise<unknown> => {
      if (this.#served !== null) return await this.#served.perform(serving, effect, rollout);
      const begun = await code.play(args, opening, serving, effect, rollout);
      this.#served = begun;
      return begun.performed;
    };
    try {
      const reply = await this.#isolate.ask(performed, givenUp);
      return redact(readPerformed(reply, rollout, host.now()), this.#secrets);
    } finally {
      end();
    }
  }

  #given(effect: HookEffect, performed: Performed): Performed {
    if (effect.kind === "close") this.#letGo();
    return performed;
  }

  #failed({ kind }: HookEffect, { state }: Rollout, error: SerializedError): Performed["event"] {
    if (kind !== "close") return { type: "failed", failure: environmentFailure(error), error };
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
