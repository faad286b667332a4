/**
 * An organisation's billing terms, and its spending per month (UTC, by the time of posting).
 *
 * Invariants. Each threshold of a budget is recorded once a month, in the transaction that crosses it, and is kept
 * until its notice is delivered.
 */
import type { BillingMode } from "../../contract/money.ts";
import type { Rows } from "../../kernel/kit/rows.ts";
import type { BudgetRow } from "../tables.ts";

export type Budget = Pick<BudgetRow, "id" | "target_kind" | "target_id" | "limit_micros">;

/** Read from the database, as limits are. */
export interface Terms {
  readonly org_id: string;
  readonly billing: BillingMode;
  /** Null: no limit. */
  readonly credit_limit_micros: number | null;
  readonly budgets: readonly Budget[];
  readonly read_at: number;
}

export interface Payer {
  readonly project_id: string | null;
  /** `key_…`, `per_…` */
  readonly payer: string | null;
}

/** Percentages of a budget. */
export const THRESHOLDS = [50, 80, 100] as const;

const DELIVERY_TRIES = 8;

/** A notice to the owners about a budget. */
export interface Notice {
  readonly month: string;
  readonly budget_id: string;
  readonly percent: number;
  readonly target_kind: Budget["target_kind"];
  readonly target_id: string;
  readonly limit_micros: number;
  readonly spent_micros: number;
  /** When the threshold was crossed, in epoch milliseconds; and the project of the run that crossed it, or null. */
  readonly at: number;
  readonly crossed_in?: string | null;
}

/** The lowest allowed balance: 0 or less. */
export function floorOf({ billing, credit_limit_micros }: Terms): number {
  if (billing === "prepaid") return 0;
  return billing === "off" || credit_limit_micros === null ? Number.NEGATIVE_INFINITY : -credit_limit_micros;
}

/** The name under which spending of a budget is stored: `organization`, `project pj_…`, `key key_…`. */
export function nameOf({ target_kind, target_id }: Pick<Budget, "target_kind" | "target_id">): string {
  return target_kind === "organization" ? "organization" : `${target_kind} ${target_id}`;
}

/** The names under which a payer's charges are counted. */
export function poolsNamed({ project_id, payer }: Payer): string[] {
  const project = project_id === null ? [] : [`project ${project_id}`];
  return ["organization", ...project, ...(payer === null ? [] : [`key ${payer}`])];
}

type NoticeRow = { month: string; budget_id: string; percent: number; about: string; at: number };

export class Spending {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Spending by the name of the budget's target. */
  ofMonth(month: string): ReadonlyMap<string, number> {
    const rows = this.#rows.all<{ name: string; micros: number }>(
      "select name, micros from spent where month = ?",
      month,
    );
    return new Map(rows.map(({ name, micros }) => [name, micros]));
  }

  of(month: string, name: string): number {
    const query = "select micros from spent where month = ? and name = ?";
    return this.#rows.one<{ micros: number }>(query, month, name)?.micros ?? 0;
  }

  add(month: string, payer: Payer, micros: number): void {
    if (micros === 0) return;
    for (const name of poolsNamed(payer)) {
      const query = `insert into spent (month, name, micros) values (?, ?, ?)
        on conflict do update set micros = micros + excluded.micros`;
      this.#rows.all(query, month, name, micros);
    }
  }

  /**
   * Records thresholds that are now crossed, for the budgets that apply to the charged payer; null: for all budgets.
   */
  watch(month: string, budgets: readonly Budget[], payer: Payer | null, now: number): void {
    const charged = payer === null ? null : new Set(poolsNamed(payer));
    for (const budget of budgets) {
      if (charged !== null && !charged.has(nameOf(budget))) continue;
      const spent = this.of(month, nameOf(budget));
      const crossed = THRESHOLDS.filter((percent) => spent > 0 && spent * 100 >= percent * budget.limit_micros);
      for (const percent of crossed) {
        const { id: budget_id, target_kind, target_id, limit_micros } = budget;
        const crossed_in = payer?.project_id ?? null;
        const threshold = { target_kind, target_id, limit_micros, spent_micros: spent, crossed_in };
        const about = JSON.stringify(threshold);
        this.#rows.insert("notices", { month, budget_id, percent, about, at: now }, "ignore");
      }
    }
  }

  toDeliver(limit: number): Notice[] {
    const columns = "month, budget_id, percent, about, at";
    const query = `select ${columns} from notices where delivered_at is null order by at limit ?`;
    return this.#rows.all<NoticeRow>(query, limit).map(({ about, ...row }) => ({ ...row, ...JSON.parse(about) }));
  }

  /** Thresholds that were crossed in a month, by budget. */
  crossed(month: string): ReadonlyMap<string, number[]> {
    const query = "select budget_id, percent from notices where month = ? order by percent";
    const found = new Map<string, number[]>();
    for (const { budget_id, percent } of this.#rows.all<{ budget_id: string; percent: number }>(query, month)) {
      found.set(budget_id, [...(found.get(budget_id) ?? []), percent]);
    }
    return found;
  }

  /** Counts a failed delivery. Returns false after `DELIVERY_TRIES` failures. */
  noteFailed({ month, budget_id, percent }: Notice): boolean {
    const key = [month, budget_id, percent];
    const tried =
      "update notices set tries = tries + 1 where month = ? and budget_id = ? and percent = ? returning tries";
    return (this.#rows.one<{ tries: number }>(tried, ...key)?.tries ?? 0) < DELIVERY_TRIES;
  }

  noteDelivered({ month, budget_id, percent }: Notice, now: number): void {
    this.#rows.set("notices", { month, budget_id, percent }, { delivered_at: now });
  }

  /** Deletes spending and delivered notices of months before this one. */
  drop(month: string): void {
    this.#rows.all("delete from spent where month < ?", month);
    this.#rows.all("delete from notices where month < ? and delivered_at is not null", month);
  }
}
