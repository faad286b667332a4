/**
 * Answers of a project's models to calls at temperature 0, in R2, so that a run that asks for it (`answer_cache`) does
 * not pay for the same call again.
 *
 * Invariants. A key contains all that decides an answer: the address that gave it, and the whole body of the call. Calls
 * of training runs and of fleets, whose weights change, are neither looked up nor kept. An answer is kept beside the
 * work that follows it, which does not wait. If the process is killed before the turn is written, its answer may be
 * found here: it is known by its idempotency key, and counts as the answer that was paid for. The cache may fail: an
 * answer that is not found is requested, and an answer that could not be kept still counts. Entries lie in folders by
 * time, so that old ones are deleted without an index.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { type ModelResponse, ROLLOUT_SCHEMA } from "../../contract/trajectory.ts";
import { exceedsUtf8 } from "../../core/size.ts";
import { requestBody } from "../clients/inference.ts";
import { EndpointUnusable, type OpenEndpoint } from "../endpoint/call.ts";
import { idsOf, logError } from "../kit/log.ts";
import { answerKey, answersFolder } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { TurnCall } from "../messages/endpoint-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";

/** An answer is kept for one to two periods. */
const PERIOD_MS = LIMITS.answersKeptMs / 2;

type CachingSpec = Pick<RolloutSpec, "scope" | "run_id" | "rollout_id" | "answer_cache" | "fleet" | "policy_version">;

interface StoredAnswer {
  readonly response: ModelResponse;
  /** Of the call that was answered. */
  readonly idempotency_key: string;
}

/** `from_cache` is absent if it answers this very call, which was sent before and whose turn was lost. */
export interface FoundAnswer {
  readonly response: ModelResponse;
  readonly from_cache?: true;
}

/** Limits the wait for a connection. */
type During = (wait: Promise<void>) => Promise<void>;

export class AnswerCache {
  readonly #env: Env;
  readonly #spec: CachingSpec;
  readonly #calls: Subrequests;
  readonly #now: () => number;
  readonly #opens: OpenEndpoint;
  /** The address that the endpoint had when it was opened last. */
  #address: string | null = null;
  readonly #keeping = new Set<Promise<void>>();

  constructor(env: Env, spec: CachingSpec, open: OpenEndpoint, calls: Subrequests, now: () => number) {
    this.#env = env;
    this.#spec = spec;
    this.#opens = open;
    this.#calls = calls;
    this.#now = now;
  }

  /** Opens the endpoint for a call. An answer is kept under the address that was opened for it. */
  readonly open: OpenEndpoint = async (fresh) => {
    const access = await this.#opens(fresh);
    this.#address = access.base_url;
    return access;
  };

  /** Whether the answer to this call may be found or kept. */
  holds(call: TurnCall): boolean {
    const { answer_cache = false, fleet, policy_version } = this.#spec;
    const isFixed = answer_cache && fleet === undefined && policy_version === undefined;
    // What is sent: `extra_body` may have another temperature.
    return isFixed && requestBody(call)["temperature"] === 0;
  }

  /** Null if the answer is not there. Throws only what `during` throws. */
  async find(call: TurnCall, during: During): Promise<FoundAnswer | null> {
    const address = await this.#openedAddress();
    if (address === null) return null;
    const hash = hashOf(address, call);
    const period = periodAt(this.#now());
    for (const each of [period, period - 1]) {
      const stored = await this.#read(answerKey(this.#spec.scope, each, hash), during);
      if (stored === null) continue;
      const { response, idempotency_key } = JSON.parse(stored) as StoredAnswer;
      if (idempotency_key === call.idempotency_key) return { response };
      return { response: { ...response, latency_ms: 0 }, from_cache: true };
    }
    return null;
  }

  /** Begins to keep the answer of a call that was sent. One that is too large is not kept. */
  keep(call: TurnCall, response: ModelResponse): void {
    const { idempotency_key } = call;
    const text = JSON.stringify({ response, idempotency_key } satisfies StoredAnswer);
    if (this.#address === null || exceedsUtf8(text, LIMITS.cachedAnswerBytes)) return;
    const key = answerKey(this.#spec.scope, periodAt(this.#now()), hashOf(this.#address, call));
    const keeping = this.#write(key, text).finally(() => this.#keeping.delete(keeping));
    this.#keeping.add(keeping);
  }

  /** Resolves when nothing is being kept. */
  async settled(): Promise<void> {
    await Promise.all(this.#keeping);
  }

  /** Null if the endpoint cannot be opened: the call itself will report that, or wait. */
  async #openedAddress(): Promise<string | null> {
    try {
      return (await this.open(false)).base_url;
    } catch (thrown) {
      if (!(thrown instanceof EndpointUnusable)) this.#log("an endpoint could not be opened for the cache", thrown);
      return null;
    }
  }

  /** Null if it is not there, or cannot be read. */
  async #read(key: string, during: During): Promise<string | null> {
    return await this.#calls.inTurn(async () => {
      try {
        const object = await this.#env.STORE.get(key);
        return object === null ? null : await object.text();
      } catch (thrown) {
        this.#log("an answer could not be looked up in the cache", thrown);
        return null;
      }
    }, during);
  }

  async #write(key: string, text: string): Promise<void> {
    try {
      await this.#calls.inTurn(() => this.#env.STORE.put(key, text));
    } catch (thrown) {
      this.#log("an answer could not be kept in the cache", thrown);
    }
  }

  #log(what: string, thrown: unknown): void {
    logError(what, idsOf(this.#spec), thrown);
  }
}

function hashOf(address: string, call: TurnCall): string {
  return sha256Hex(JSON.stringify([ROLLOUT_SCHEMA, address, requestBody(call), call.max_seq_len ?? null]));
}

function periodAt(now: number): number {
  return Math.floor(now / PERIOD_MS);
}

/** Deletes at most `limit` answers whose time is over. True: there may be more. */
export async function dropAnswers(
  { STORE }: Env,
  scope: Scope,
  now: number,
  limit: number,
  subrequests: Subrequests,
): Promise<boolean> {
  const folder = answersFolder(scope);
  const listed = await subrequests.fetch(() => STORE.list({ prefix: folder, delimiter: "/" }));
  const old = listed.delimitedPrefixes.filter((each) => Number(each.slice(folder.length, -1)) < periodAt(now) - 1);
  const [prefix] = old;
  if (prefix === undefined) return false;
  const { objects, truncated } = await subrequests.fetch(() => STORE.list({ prefix, limit }));
  const keys = objects.map(({ key }) => key);
  if (keys.length > 0) await subrequests.fetch(() => STORE.delete(keys));
  return truncated || old.length > 1;
}

/** True while the project has answers that will expire. */
export async function hasAnswers({ STORE }: Env, scope: Scope, subrequests: Subrequests): Promise<boolean> {
  const { objects } = await subrequests.fetch(() => STORE.list({ prefix: answersFolder(scope), limit: 1 }));
  return objects.length > 0;
}
