/**
 * Answers of a project's models to calls at temperature 0, in R2, so that a run that asks for it (`answer_cache`) does
 * not pay for the same call again.
 *
 * Invariants. A key contains all that decides an answer: the endpoint's address, and the whole body of the call. Calls
 * of training runs and of fleets, whose weights change, are neither looked up nor kept. An answer is kept before its
 * turn is written: if the process is killed between the two, the call is answered from here. The cache may fail: an
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

export class AnswerCache {
  readonly #env: Env;
  readonly #spec: CachingSpec;
  readonly #open: OpenEndpoint;
  readonly #calls: Subrequests;
  readonly #now: () => number;

  constructor(env: Env, spec: CachingSpec, open: OpenEndpoint, calls: Subrequests, now: () => number) {
    this.#env = env;
    this.#spec = spec;
    this.#open = open;
    this.#calls = calls;
    this.#now = now;
  }

  /** Null if the answer is not there, or the call is not cached. */
  async find(call: TurnCall): Promise<ModelResponse | null> {
    if (!this.#holds(call)) return null;
    const hash = await this.#hashOf(call);
    if (hash === null) return null;
    try {
      const period = periodAt(this.#now());
      for (const each of [period, period - 1]) {
        const text = await this.#read(answerKey(this.#spec.scope, each, hash));
        if (text !== null) return { ...(JSON.parse(text) as ModelResponse), latency_ms: 0 };
      }
    } catch (thrown) {
      logError("an answer could not be looked up in the cache", idsOf(this.#spec), thrown);
    }
    return null;
  }

  /** An answer that is too large is not kept. */
  async keep(call: TurnCall, response: ModelResponse): Promise<void> {
    if (!this.#holds(call)) return;
    const text = JSON.stringify(response);
    if (exceedsUtf8(text, LIMITS.cachedAnswerBytes)) return;
    const hash = await this.#hashOf(call);
    if (hash === null) return;
    const key = answerKey(this.#spec.scope, periodAt(this.#now()), hash);
    try {
      await this.#calls.inTurn(() => this.#env.STORE.put(key, text));
    } catch (thrown) {
      logError("an answer could not be kept in the cache", idsOf(this.#spec), thrown);
    }
  }

  #holds({ sampling }: TurnCall): boolean {
    const { answer_cache = false, fleet, policy_version } = this.#spec;
    return answer_cache && fleet === undefined && policy_version === undefined && sampling.temperature === 0;
  }

  /** Null if the endpoint cannot be opened: the call itself will report that. */
  async #hashOf(call: TurnCall): Promise<string | null> {
    try {
      const { base_url } = await this.#open(false);
      return sha256Hex(JSON.stringify([ROLLOUT_SCHEMA, base_url, requestBody(call), call.max_seq_len ?? null]));
    } catch (thrown) {
      if (thrown instanceof EndpointUnusable) return null;
      throw thrown;
    }
  }

  #read(key: string): Promise<string | null> {
    return this.#calls.inTurn(async () => {
      const object = await this.#env.STORE.get(key);
      return object === null ? null : await object.text();
    });
  }
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
