/**
 * Money that the rollouts of agents hold between their calls. If something in the run waits for money, such rollouts give
 * back what they have not spent: an agent may do nothing for hours, and it may wait for the very call that waits.
 *
 * Invariants. Only calls in flight are worth waiting for. A rollout has written that it gives its money back before the
 * run counts the money as available, and it must ask again before its next call. An answer that is older than the last
 * request of its rollout changes nothing.
 */
import { LIMITS } from "../../contract/limits.ts";
import { letOut } from "../../core/costs/call-budget.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import { idsOf, logError } from "../kit/log.ts";
import { rolloutShard } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec, UnspentBudget } from "../messages/wire.ts";
import { isShort } from "./cap.ts";
import type { RestingRow } from "./needy-rollouts.ts";
import type { RunStore } from "./store.ts";

/** While money is short, the rollouts that had a call in flight are asked again after this. */
const AGAIN_MS = 2000;

export class Reclaims {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  /** The request after which a rollout gave its money back, by `seq`. Until its next request it holds nothing. */
  readonly #gaveBack = new Map<number, number>();
  /** Epoch milliseconds; 0 while money is not short. */
  #askedAt = 0;
  /** The last rollout that was asked: the next question begins after it. */
  #last = 0;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
  }

  /** How many running rollouts neither wait for money nor hold any. */
  idle(): number {
    if (this.#gaveBack.size === 0) return 0;
    return this.#store.needy.resting().filter((row) => this.#isIdle(row)).length;
  }

  /** When rollouts are asked next, in epoch milliseconds; null while money is not short. */
  nextAt(spec: RunSpec): number | null {
    return this.#reclaims(spec) ? this.#askedAt + AGAIN_MS : null;
  }

  /** Asks one slice of rollouts. One that cannot be reached counts as having a call in flight. Never throws. */
  async ask(spec: RunSpec): Promise<void> {
    if (!this.#reclaims(spec)) {
      this.#gaveBack.clear();
      this.#askedAt = 0;
    } else if (this.#now() >= this.#askedAt + AGAIN_MS) {
      this.#askedAt = this.#now();
      const shards = [...Map.groupBy(this.#slice(), ({ host }) => host ?? 0)];
      await new Subrequests().objectAll(shards, ([shard, rows]) => this.#askShard(spec, shard, rows));
    }
  }

  #reclaims(spec: RunSpec): boolean {
    return spec.agent !== undefined && capOf(spec) !== null && isShort(this.#store, spec);
  }

  #isIdle({ seq, asked }: RestingRow): boolean {
    return this.#gaveBack.get(seq) === asked;
  }

  #slice(): RestingRow[] {
    const rows = this.#store.needy.resting().filter((row) => row.host !== null && !this.#isIdle(row));
    const later = rows.filter(({ seq }) => seq > this.#last);
    const slice = [...later, ...rows.filter(({ seq }) => seq <= this.#last)].slice(0, LIMITS.sliceObjects);
    this.#last = slice.at(-1)?.seq ?? 0;
    return slice;
  }

  async #askShard(spec: RunSpec, shard: number, rows: readonly RestingRow[]): Promise<void> {
    try {
      const rollouts = rolloutShard(this.#env, spec.scope, spec.run_id, shard, spec.fleet);
      const unspent = await rollouts.giveBack(rows.map(({ id }) => id));
      this.#store.transaction(() => {
        for (const [index, { seq }] of rows.entries()) this.#take(seq, unspent[index] ?? null);
      });
    } catch (thrown) {
      logError("rollouts did not give their money back", idsOf(spec), thrown);
    }
  }

  #take(seq: number, unspent: UnspentBudget | null): void {
    const row = this.#store.bySeq(seq);
    if (unspent === null || row?.status !== "running" || row.needs > 0 || row.asked !== unspent.asks) return;
    const head = this.#store.head();
    this.#store.saveHead({ ...head, cap: { ...head.cap, ...letOut(head.cap, unspent.spent - row.ceiling) } });
    this.#store.setRollout(seq, { ceiling: unspent.spent });
    this.#gaveBack.set(seq, row.asked);
  }
}
