/**
 * The runs that have a lease at one endpoint, with their sums and fair shares. Immutable: a change returns a new value.
 *
 * Invariants. Fair shares depend only on which runs there are, and on the organisation, `wants` and `more` of each. A
 * change of anything else keeps the shares that were computed before, so most asks compute none. The sums are whole
 * numbers and follow each change. Both are what a computation from nothing gives.
 */
import { type Claim, fairQuotas } from "../kit/fair-quotas.ts";

/** What was granted to a run, and what it reported. */
export interface LeaseRun {
  readonly org_id: string;
  readonly project_id: string;
  readonly running: number;
  readonly wants: number;
  readonly more: boolean;
  readonly permits: number;
  /** Calls per minute; null = any number. */
  readonly rate: number | null;
  readonly lease_until: number;
  /** When it was last notified to ask again; null if it has asked since. */
  readonly told_at: number | null;
}

type ShareClaim = Pick<LeaseRun, "org_id" | "wants" | "more">;

/** Sums over all runs. */
interface LeaseSums {
  readonly runs: number;
  readonly running: number;
  /** A run holds as many rollouts as it was granted, or as it reports as running if that is more. */
  readonly held: number;
  /** Calls per minute that were granted. */
  readonly rate: number;
  /** The number of runs with rollouts left to dispatch. */
  readonly more: number;
}

const NO_SUMS: LeaseSums = { runs: 0, running: 0, held: 0, rate: 0, more: 0 };

/** The fair shares of some claims. Computed when they are first asked for, and kept for the last limit. */
class Shares {
  readonly #claims: ReadonlyMap<string, ShareClaim>;
  #places: { readonly limit: number; readonly shares: ReadonlyMap<string, number> } | undefined;
  #rates: { readonly rpm: number; readonly shares: ReadonlyMap<string, number> } | undefined;

  constructor(claims: ReadonlyMap<string, ShareClaim>) {
    this.#claims = claims;
  }

  /** Rollouts at once, by run. */
  places(limit: number): ReadonlyMap<string, number> {
    if (this.#places?.limit !== limit) {
      this.#places = {
        limit,
        shares: fairQuotas(
          this.#claimsFor(({ wants }) => wants),
          limit,
        ),
      };
    }
    return this.#places.shares;
  }

  /** Calls per minute, by run. Runs without rollouts left to dispatch have none. */
  rates(rpm: number): ReadonlyMap<string, number> {
    if (this.#rates?.rpm !== rpm) {
      this.#rates = {
        rpm,
        shares: fairQuotas(
          this.#claimsFor(({ more }) => (more ? rpm : 0)),
          rpm,
        ),
      };
    }
    return this.#rates.shares;
  }

  #claimsFor(wantsOf: (claim: ShareClaim) => number): Claim[] {
    return Array.from(this.#claims, ([id, claim]) => ({ id, group: claim.org_id, wants: wantsOf(claim) }));
  }
}

export class LeaseRuns {
  readonly #runs: ReadonlyMap<string, LeaseRun>;
  readonly sums: LeaseSums;
  readonly shares: Shares;

  private constructor(runs: ReadonlyMap<string, LeaseRun>, sums: LeaseSums, shares: Shares) {
    this.#runs = runs;
    this.sums = sums;
    this.shares = shares;
  }

  static of(runs: Iterable<readonly [run_id: string, run: LeaseRun]>): LeaseRuns {
    const all = new Map(runs);
    return new LeaseRuns(
      all,
      [...all.values()].reduce((sums, run) => plus(sums, run, 1), NO_SUMS),
      new Shares(all),
    );
  }

  get size(): number {
    return this.#runs.size;
  }

  get(run_id: string): LeaseRun | undefined {
    return this.#runs.get(run_id);
  }

  [Symbol.iterator](): IterableIterator<[run_id: string, run: LeaseRun]> {
    return this.#runs.entries();
  }

  /** The sums over all other runs. */
  sumsWithout(run_id: string): LeaseSums {
    const run = this.get(run_id);
    return run === undefined ? this.sums : plus(this.sums, run, -1);
  }

  /** The shares that all runs have once this one makes that claim. */
  sharesWith(run_id: string, claim: ShareClaim): Shares {
    return isSameClaim(this.get(run_id), claim)
      ? this.shares
      : new Shares(new Map<string, ShareClaim>(this.#runs).set(run_id, claim));
  }

  /** `shares`: what `sharesWith` returned for the same claim. */
  with(run_id: string, run: LeaseRun, shares = this.sharesWith(run_id, run)): LeaseRuns {
    return new LeaseRuns(new Map(this.#runs).set(run_id, run), plus(this.sumsWithout(run_id), run, 1), shares);
  }

  without(run_ids: readonly string[]): LeaseRuns {
    const left = run_ids.filter((run_id) => this.#runs.has(run_id));
    if (left.length === 0) return this;
    const runs = new Map(this.#runs);
    for (const run_id of left) runs.delete(run_id);
    return LeaseRuns.of(runs);
  }

  /** These runs were notified to ask again. */
  withNotified(run_ids: readonly string[], told_at: number): LeaseRuns {
    if (run_ids.length === 0) return this;
    const runs = new Map(this.#runs);
    for (const run_id of run_ids) {
      const run = runs.get(run_id);
      if (run !== undefined) runs.set(run_id, { ...run, told_at });
    }
    return new LeaseRuns(runs, this.sums, this.shares);
  }
}

function isSameClaim(before: ShareClaim | undefined, { org_id, wants, more }: ShareClaim): boolean {
  return before !== undefined && before.org_id === org_id && before.wants === wants && before.more === more;
}

/** The sums with this run (`sign` 1), or without it (-1). */
function plus(sums: LeaseSums, { running, permits: quota, rate, more }: LeaseRun, sign: 1 | -1): LeaseSums {
  return {
    runs: sums.runs + sign,
    running: sums.running + sign * running,
    held: sums.held + sign * Math.max(running, quota),
    rate: sums.rate + sign * (rate ?? 0),
    more: sums.more + sign * Number(more),
  };
}
