/**
 * Money that runs have reserved for what they may be charged.
 *
 * Invariants. A grant never exceeds what the balance and each applicable budget have left after the reservations of
 * other runs. A reservation ends with its lease. A run that got less than it asked for keeps its row, even at 0, until
 * the lease ends, so that it is notified when there is more. If less than a run's `least` is left, the run gets nothing
 * and the money stays for others. What a run was charged always counts, reserved or not.
 */

import type { Rows } from "../../kernel/kit/rows.ts";
import type { GrantedReservation, ReservationShortfall } from "../../kernel/run/schema.ts";
import type { RunFacts } from "../rpc.ts";
import { type Budget, floorOf, nameOf, type Payer, poolsNamed, type Spending, type Terms } from "./budgets.ts";
import { BALANCE } from "./entries.ts";

export const RESERVATION_LEASE_MS = 15 * 60_000;
/** A run that was notified and has not asked is notified again after this time. */
const NOTIFY_AGAIN_MS = 10_000;

export type ReservationRow = {
  run_id: string;
  project_id: string;
  payer: string;
  asked: number;
  /** If less than this is available, the run gets nothing. */
  least: number;
  micros: number;
  until: number;
  told_at: number | null;
};

/** What a run asks for: the most and the least that it can use. */
export type ReservationOrder = Pick<ReservationRow, "asked" | "least">;

/** What a grant depends on. */
export interface Means {
  readonly terms: Terms;
  readonly balance: number;
  readonly month: string;
  readonly now: number;
}

export class Reservations {
  readonly #rows: Rows;
  readonly #spending: Spending;

  constructor(rows: Rows, spending: Spending) {
    this.#rows = rows;
    this.#spending = spending;
  }

  live(now: number): ReservationRow[] {
    return this.#rows.all<ReservationRow>("select * from holds where until > ? order by run_id", now);
  }

  reserved(now: number): number {
    return sumOf(this.live(now));
  }

  /** By the name of the budget's target. */
  reservedByName(now: number): ReadonlyMap<string, number> {
    return byName(this.live(now));
  }

  /** Sets the run's reservation to what it asks for, or to as much of it as is available. */
  ask(run: RunFacts, { asked, least }: ReservationOrder, means: Means): GrantedReservation {
    const { now } = means;
    const until = now + RESERVATION_LEASE_MS;
    if (asked === 0) {
      this.release(run.run_id);
      return { micros: 0, until, short: null };
    }
    const { micros: most, short } = this.offer(run, asked, means, "next");
    const micros = granted({ asked, least }, most);
    this.#write(run, { asked, least, micros, until });
    return { micros, until, short };
  }

  /** All or nothing, for a run that is about to start. */
  begin(run: RunFacts, asked: number, means: Means): GrantedReservation {
    const offered = this.offer(run, asked, means, "first");
    if (offered.short === null) return this.ask(run, { asked, least: 0 }, means);
    return { micros: 0, until: means.now, short: offered.short };
  }

  /** Subtracts a charge from the run's reservation and renews the lease. Null: the run had no reservation. */
  use(run: RunFacts, charged: number, now: number): GrantedReservation | null {
    const before = this.live(now).find(({ run_id }) => run_id === run.run_id);
    if (before === undefined) return null;
    const left = (micros: number) => Math.max(0, micros - charged);
    const until = now + RESERVATION_LEASE_MS;
    const { least } = before;
    this.#write(run, { asked: left(before.asked), least, micros: left(before.micros), until });
    return { micros: left(before.micros), until, short: null };
  }

  /** What the run would get if it asked for this now. `which`: the rollouts, for the message of a refusal. */
  offer(
    { run_id, scope, payer }: RunFacts,
    asked: number,
    means: Means,
    which: "first" | "next",
  ): Pick<GrantedReservation, "micros" | "short"> {
    const held = this.live(means.now);
    const own = held.find((row) => row.run_id === run_id)?.micros ?? 0;
    const pools = poolsOf(this.#pools(held, means), { project_id: scope.projectId, payer });
    const [tightest] = pools.sort((one, other) => one.left - other.left);
    if (asked === 0 || tightest === undefined || tightest.left + own >= asked) return { micros: asked, short: null };
    // A negative amount is owed, and is also missing.
    const left = tightest.left + own;
    return { micros: Math.max(0, left), short: shortOf(asked, left, tightest.budget, which) };
  }

  /** Runs that would get another grant now and were not notified recently. */
  toNotify(means: Means): ReservationRow[] {
    return this.#unsettled(means).filter(({ told_at }) => told_at === null || told_at + NOTIFY_AGAIN_MS <= means.now);
  }

  noteNotified(runIds: readonly string[], now: number): void {
    for (const run_id of runIds) this.#rows.set("holds", { run_id }, { told_at: now });
  }

  /** Epoch milliseconds: the end of the first lease, or when a run must be notified. */
  nextAt(means: Means | null, now: number): number | null {
    const leases = this.#rows.one<{ at: number | null }>("select min(until) as at from holds")?.at ?? null;
    if (leases === null) return null;
    const unsettled = means === null ? [] : this.#unsettled(means);
    const notifyTimes = unsettled.map(({ told_at }) => (told_at === null ? now : told_at + NOTIFY_AGAIN_MS));
    return Math.max(now, Math.min(leases, ...notifyTimes));
  }

  /** Whether some run got less than it asked for. If a budget is the reason, it may get more next month. */
  anyShort(): boolean {
    return this.#rows.one("select 1 from holds where micros < asked limit 1") !== null;
  }

  release(runId: string): void {
    this.#rows.all("delete from holds where run_id = ?", runId);
  }

  dropEnded(now: number): void {
    this.#rows.all("delete from holds where until <= ?", now);
  }

  #write(
    { run_id, scope, payer }: RunFacts,
    reservation: ReservationOrder & Pick<ReservationRow, "micros" | "until">,
  ): void {
    this.#rows.insert(
      "holds",
      { run_id, project_id: scope.projectId, payer, ...reservation, told_at: null },
      "replace",
    );
  }

  #unsettled(means: Means): ReservationRow[] {
    const held = this.live(means.now);
    if (held.length === 0) return [];
    const pools = this.#pools(held, means);
    return held.filter((row) => {
      const lefts = poolsOf(pools, row).map(({ left }) => left);
      return granted(row, row.micros + Math.min(...lefts)) !== row.micros;
    });
  }

  /** What is left of the balance and of each budget after all reservations, by name. */
  #pools(held: readonly ReservationRow[], { terms, balance, month }: Means): ReadonlyMap<string, Pool> {
    const sums = byName(held);
    const spent = this.#spending.ofMonth(month);
    const ofBudgets = terms.budgets.map((budget): [string, Pool] => {
      const of = nameOf(budget);
      return [of, { budget, left: budget.limit_micros - (spent.get(of) ?? 0) - (sums.get(of) ?? 0) }];
    });
    const left = balance - floorOf(terms) - sumOf(held);
    return new Map([[BALANCE, { budget: null, left }], ...ofBudgets]);
  }
}

/** The amount to reserve of what is left, in micro-dollars. */
function granted({ asked, least }: ReservationOrder, left: number): number {
  const micros = Math.max(0, Math.min(asked, left));
  return micros < Math.min(least, asked) ? 0 : micros;
}

interface Pool {
  /** Null: the balance. */
  readonly budget: Budget | null;
  readonly left: number;
}

/** The pools that a payer draws from. */
function poolsOf(pools: ReadonlyMap<string, Pool>, payer: Payer): Pool[] {
  return [BALANCE, ...poolsNamed(payer)].flatMap((of) => pools.get(of) ?? []);
}

function byName(held: readonly ReservationRow[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const row of held) for (const of of poolsNamed(row)) sums.set(of, (sums.get(of) ?? 0) + row.micros);
  return sums;
}

function sumOf(reservations: readonly ReservationRow[]): number {
  return reservations.reduce((sum, { micros }) => sum + micros, 0);
}

/** `left`: what the pool leaves for the run; negative if more is owed or spent than available. */
function shortOf(asked: number, left: number, budget: Budget | null, which: "first" | "next"): ReservationShortfall {
  const shortfall_micros = asked - left;
  const of = { organization: "the organisation", project: "the project", key: "the key or person that started it" };
  const pool = budget === null ? "the organisation's balance" : `this month's budget of ${of[budget.target_kind]}`;
  const need = `the ${which} rollouts need ${dollars(asked)}`;
  const reason = `${need}, but ${pool} has ${dollars(left)} left: ${dollars(shortfall_micros)} is missing`;
  return { by: budget === null ? "balance" : "budget", budget_id: budget?.id ?? null, shortfall_micros, reason };
}

/** `$1.25`, `−$0.000001`: six decimals, without trailing zeros but at least two decimals. */
export function dollars(micros: number): string {
  const [whole = "0", part = ""] = (Math.abs(micros) / 1_000_000).toFixed(6).split(".");
  return `${micros < 0 ? "−" : ""}$${whole}.${part.replace(/0{1,4}$/, "")}`;
}
