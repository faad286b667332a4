/**
 * A minimal model of a ledger that shares no code with the platform: a second opinion on its ledger. Amounts are
 * numbers, everything is in maps, and nothing fails.
 */

export interface ModelEntry {
  readonly source: string;
  /** The change of each account. */
  readonly lines: Readonly<Record<string, number>>;
}

interface ModelReservation {
  readonly project: string;
  readonly payer: string;
  readonly asked: number;
  readonly micros: number;
  readonly until: number;
}

export interface ModelBudget {
  readonly id: string;
  readonly target_kind: "organization" | "project" | "key";
  readonly target_id: string;
  readonly limit_micros: number;
}

export interface ModelTerms {
  /** The lowest allowed balance. */
  readonly floor: number;
  readonly budgets: readonly ModelBudget[];
}

export interface ModelRun {
  readonly id: string;
  readonly project: string;
  readonly payer: string;
}

export interface ModelItem {
  readonly n: number;
  readonly source: string;
  readonly revenue: Readonly<Record<string, number>>;
}

const LEASE = 900_000;

export class LedgerModel {
  readonly entries: ModelEntry[] = [];
  readonly posted = new Set<string>();
  readonly cursors = new Map<string, number>();
  readonly spent = new Map<string, number>();
  reservations = new Map<string, ModelReservation>();
  /** The time of the latest entry: no entry is earlier than the previous one. */
  latest = 0;

  balance(): number {
    return this.accounts().get("balance") ?? 0;
  }

  accounts(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { lines } of this.entries) {
      for (const [name, micros] of Object.entries(lines)) sums.set(name, (sums.get(name) ?? 0) + micros);
    }
    return sums;
  }

  settle(
    run: ModelRun,
    stream: string,
    items: readonly ModelItem[],
    reservation: number | null,
    terms: ModelTerms,
    now: number,
    least = 0,
  ) {
    const at = `${run.id}/${stream}`;
    let cursor = this.cursors.get(at) ?? 0;
    let charged = 0;
    for (const { n, source, revenue } of items) {
      if (n === cursor + 1) {
        cursor = n;
        const price = Object.values(revenue).reduce((sum, micros) => sum + micros, 0);
        if (price === 0 || this.posted.has(source)) continue;
        charged += price;
        const gained = Object.entries(revenue).map(([line, micros]): [string, number] => [`revenue/${line}`, micros]);
        this.#enter(source, { balance: -price, ...Object.fromEntries(gained) }, now);
      } else if (n > cursor) break;
    }
    this.cursors.set(at, cursor);
    for (const name of ["organization", run.project, run.payer]) this.#spend(name, charged, now);
    return { cursor, reservation: this.#reserve(run, reservation, charged, terms, now, least) };
  }

  /** All or nothing. */
  begin(run: ModelRun, asked: number, terms: ModelTerms, now: number): number {
    const room = this.room(run, terms, now);
    if (asked > 0 && room < asked) return 0;
    this.#set(run, asked, asked, now);
    return asked;
  }

  post(source: string, account: string, micros: number, now: number): boolean {
    if (this.posted.has(source)) return false;
    this.#enter(source, { balance: micros, [account]: 0 - micros }, now);
    return true;
  }

  /** The most that the run may have reserved. */
  room(run: ModelRun, { floor, budgets }: ModelTerms, now: number): number {
    const others = [...this.reservations]
      .filter(([id, { until }]) => id !== run.id && until > now)
      .map(([, reservation]) => reservation);
    const sum = (reservations: readonly ModelReservation[]) =>
      reservations.reduce((total, { micros }) => total + micros, 0);
    const rooms = budgets.flatMap(({ target_kind, target_id, limit_micros }) => {
      const matches = (project: string, payer: string) => {
        return target_kind === "organization" || target_id === (target_kind === "project" ? project : payer);
      };
      if (!matches(run.project, run.payer)) return [];
      const held = sum(others.filter(({ project, payer }) => matches(project, payer)));
      const name = target_kind === "organization" ? "organization" : target_id;
      return [limit_micros - (this.spent.get(`${monthAt(Math.max(now, this.latest))} ${name}`) ?? 0) - held];
    });
    return Math.max(0, Math.min(this.balance() - floor - sum(others), ...rooms));
  }

  #reserve(
    run: ModelRun,
    asked: number | null,
    charged: number,
    terms: ModelTerms,
    now: number,
    least: number,
  ): number | null {
    const before = this.reservations.get(run.id);
    if (asked === null) {
      if (before === undefined || before.until <= now) return null;
      const left = Math.max(0, before.micros - charged);
      this.reservations.set(run.id, {
        ...before,
        asked: Math.max(0, before.asked - charged),
        micros: left,
        until: now + LEASE,
      });
      return left;
    }
    const room = Math.min(asked, this.room(run, terms, now));
    const micros = room < Math.min(least, asked) ? 0 : room;
    this.#set(run, asked, micros, now);
    return micros;
  }

  #set({ id, project, payer }: ModelRun, asked: number, micros: number, now: number): void {
    if (asked === 0) this.reservations.delete(id);
    else this.reservations.set(id, { project, payer, asked, micros, until: now + LEASE });
  }

  #enter(source: string, lines: Readonly<Record<string, number>>, now: number): void {
    this.posted.add(source);
    this.latest = Math.max(this.latest, now);
    this.entries.push({ source, lines });
  }

  #spend(name: string, micros: number, now: number): void {
    const key = `${monthAt(Math.max(now, this.latest))} ${name}`;
    this.spent.set(key, (this.spent.get(key) ?? 0) + micros);
  }
}

function monthAt(at: number): string {
  const time = new Date(at);
  return `${time.getUTCFullYear()}-${time.getUTCMonth()}`;
}
