/**
 * What an organisation agreed to, and what of its budgets is spent in a month (UTC, by the time of posting).
 *
 * Invariants. Each threshold of a budget is noticed once in a month, in the transaction that crosses it, and stays until
 * it is delivered.
 */
import type { BillingMode } from "../../contract/money.ts";
import type { BudgetRow } from "../../db/schema.ts";
import type { Rows } from "../kit/rows.ts";

export type Budget = Pick<BudgetRow, "id" | "target_kind" | "target_id" | "limit_micros">;

/** Read from the database, as limits are. */
export interface Terms {
  readonly org_id: string;
  readonly billing: BillingMode;
  /** Null: any. */
  readonly credit_limit_micros: number | null;
  readonly budgets: readonly Budget[];
  readonly read_at: number;
}

export interface Payer {
  readonly project_id: string | null;
  /** `key_…`, `per_…` */
  readonly payer: string | null;
}

/** In percent of a budget. */
export const THRESHOLDS = [50, 80, 100] as const;

/** What an owner is told of a budget. */
export interface Notice {
  readonly month: string;
  readonly budget_id: string;
  readonly percent: number;
  readonly target_kind: Budget["target_kind"];
  readonly target_id: string;
  readonly limit_micros: number;
  readonly spent_micros: number;
}

/** How far the balance may fall: 0 or less. */
export function floorOf({ billing, credit_limit_micros }: Terms): number {
  if (billing === "prepaid") return 0;
  return billing === "off" || credit_limit_micros === null ? Number.NEGATIVE_INFINITY : -credit_limit_micros;
}

export function appliesTo({ target_kind, target_id }: Budget, { project_id, payer }: Payer): boolean {
  if (target_kind === "organization") return true;
  return target_id === (target_kind === "project" ? project_id : payer);
}

/** The thresholds that are crossed; of what nobody used none is. */
export function crossedOf({ limit_micros }: Budget, spent: number): number[] {
  return THRESHOLDS.filter((percent) => spent > 0 && spent * 100 >= percent * limit_micros);
}

type NoticeRow = { month: string; budget_id: string; percent: number; about: string };

export class Spending {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  of(month: string, { target_kind, target_id }: Budget): number {
    const query = "select micros from spent where month = ? and kind = ? and id = ?";
    const id = target_kind === "organization" ? "" : target_id;
    return this.#rows.one<{ micros: number }>(query, month, target_kind, id)?.micros ?? 0;
  }

  add(month: string, { project_id, payer }: Payer, micros: number): void {
    if (micros === 0) return;
    const targets = { organization: "", project: project_id, key: payer };
    for (const [kind, id] of Object.entries(targets)) {
      if (id === null) continue;
      const query = `insert into spent (month, kind, id, micros) values (?, ?, ?, ?)
        on conflict do update set micros = micros + excluded.micros`;
      this.#rows.all(query, month, kind, id, micros);
    }
  }

  /** Notices what is crossed by now, of the budgets that apply to whoever was charged; null: of all. */
  watch(month: string, budgets: readonly Budget[], payer: Payer | null, now: number): void {
    for (const budget of budgets) {
      if (payer !== null && !appliesTo(budget, payer)) continue;
      const spent = this.of(month, budget);
      for (const percent of crossedOf(budget, spent)) {
        const { id: budget_id, target_kind, target_id, limit_micros } = budget;
        const about = JSON.stringify({ target_kind, target_id, limit_micros, spent_micros: spent });
        this.#rows.insert("notices", { month, budget_id, percent, about, at: now }, "ignore");
      }
    }
  }

  toDeliver(limit: number): Notice[] {
    const query = "select month, budget_id, percent, about from notices where delivered_at is null order by at limit ?";
    return this.#rows.all<NoticeRow>(query, limit).map(({ about, ...row }) => ({ ...row, ...JSON.parse(about) }));
  }

  noteDelivered({ month, budget_id, percent }: Notice, now: number): void {
    this.#rows.set("notices", { month, budget_id, percent }, { delivered_at: now });
  }

  /** Months before this one. */
  drop(month: string): void {
    this.#rows.all("delete from spent where month < ?", month);
    this.#rows.all("delete from notices where month < ? and delivered_at is not null", month);
  }
}
