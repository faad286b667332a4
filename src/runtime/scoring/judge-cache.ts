/**
 * Verdicts that were paid for once, in D1. The key is everything that decides a verdict: the judge's address, model and
 * settings, the whole question with its form, which pass it is. Nothing depends on the table: what is not found is asked
 * for, and a verdict that could not be kept was given all the same.
 */
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import { type CachedVerdict, findVerdicts, keepVerdict } from "../../db/judge-verdicts.ts";
import type { JudgeTarget, RunSpec } from "../contract/wire.ts";
import { openEndpoint } from "../endpoint/endpoints.ts";
import { logError } from "../kit/log.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { chunksOf } from "../run/queues.ts";

/** D1 binds at most 100 parameters. */
const KEYS_PER_QUERY = 64;

export interface Addressed {
  readonly ask: JudgeAsk;
  readonly target: JudgeTarget;
}

export class JudgeCache {
  readonly #env: Env;
  readonly #spec: RunSpec;
  readonly #subrequests: Subrequests;

  constructor(env: Env, spec: RunSpec, subrequests: Subrequests) {
    this.#env = env;
    this.#spec = spec;
    this.#subrequests = subrequests;
  }

  /** Verdicts that are there, by the keys of their asks. */
  async find(addressed: readonly Addressed[]): Promise<ReadonlyMap<string, CachedVerdict>> {
    const found = new Map<string, CachedVerdict>();
    if (this.#spec.judge_cache === false) return found;
    try {
      const keyed = await Promise.all(
        addressed.map(async (one) => ({ ask: one.ask.key, key: await this.#keyOf(one) })),
      );
      for (const slice of chunksOf(keyed, KEYS_PER_QUERY)) {
        const keys = slice.map(({ key }) => key);
        const rows = await this.#subrequests.inTurn(() => findVerdicts(this.#env.DB, this.#spec.scope, keys));
        for (const { ask, key } of slice) {
          const verdict = rows.get(key);
          if (verdict !== undefined) found.set(ask, verdict);
        }
      }
    } catch (thrown) {
      logError("verdicts could not be looked up", this.#spec.run_id, thrown);
    }
    return found;
  }

  async keep(addressed: Addressed, verdict: CachedVerdict): Promise<void> {
    if (this.#spec.judge_cache === false) return;
    try {
      const row = { key: await this.#keyOf(addressed), verdict, created_at: Date.now() };
      await this.#subrequests.inTurn(() => keepVerdict(this.#env.DB, this.#spec.scope, row));
    } catch (thrown) {
      logError("a verdict could not be kept", this.#spec.run_id, thrown);
    }
  }

  /** The address, not the endpoint's id: one that leads elsewhere by now is another judge. */
  async #keyOf({ ask, target }: Addressed): Promise<string> {
    const { scope } = this.#spec;
    const { base_url } = await openEndpoint(this.#env, scope, target.endpoint_id, Date.now());
    const { messages, menu, pass } = ask;
    const sampling = { ...target.sampling, ...ask.sampling };
    return sha256Hex(JSON.stringify([base_url, target.model, sampling, messages, menu, pass]));
  }
}
