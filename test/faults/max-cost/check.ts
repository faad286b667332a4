/** The rules for a run with a cap, checked against the log of the models that it called. Pure. */
import type { RunAudit } from "../../../src/contract/audit.ts";
import type { TokenPrices } from "../../../src/contract/judgement.ts";
import type { RunView } from "../../../src/contract/run.ts";
import type { Violation } from "../account.ts";
import type { Book } from "./billed-model.ts";
import { type CapPlan, JUDGE_PRICES, POLICY_PRICES } from "./plan.ts";

export interface CapAccount {
  readonly plan: CapPlan;
  readonly run: RunView;
  readonly audit: RunAudit;
  readonly policy: Readonly<Book>;
  readonly judge: Readonly<Book>;
  readonly kills: number;
  readonly most_open: number;
}

/** Micro-dollars, rounded up once: not a sum of rounded amounts. */
export function bookedMicros({ policy, judge }: Pick<CapAccount, "policy" | "judge">): number {
  const product = (book: Book, prices: TokenPrices) =>
    BigInt(book.prompt_tokens) * BigInt(prices.input_per_mtok_micros) +
    BigInt(book.completion_tokens) * BigInt(prices.output_per_mtok_micros);
  return Number((product(policy, POLICY_PRICES) + product(judge, JUDGE_PRICES) + 999_999n) / 1_000_000n);
}

export function capViolations(account: CapAccount): Violation[] {
  const { plan, run, audit } = account;
  const booked = bookedMicros(account);
  const counted = run.report.counted_micros ?? Number.NaN;
  const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = run.counts;
  const ended = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
  const sum = ended.reduce((total, count) => total + count, in_flight + scored);
  const cut = pending > 0 || Object.keys(cancelled).length > 0;
  const rules: readonly (readonly [rule: string, holds: boolean, detail: string])[] = [
    ["cap", booked <= plan.max_cost_micros, `${booked} of ${plan.max_cost_micros} by the models' book`],
    ["counted", counted <= plan.max_cost_micros, `${counted} of ${plan.max_cost_micros} as the run counts`],
    ["book", booked <= counted, `${booked} by the models' book, ${counted} as the run counts`],
    ["ended", run.finished_at !== null, `the run is ${run.status}`],
    ["accounting", planned === pending + dispatched && dispatched === sum, JSON.stringify(run.counts)],
    ["reason", Object.keys(cancelled).every((reason) => reason === "budget"), JSON.stringify(cancelled)],
    ["used", !cut || counted > plan.max_cost_micros / 4, `it ended with ${counted} of ${plan.max_cost_micros}`],
  ];
  return [
    ...rules.flatMap(([rule, holds, detail]) => (holds ? [] : [{ rule, detail }])),
    ...audit.violations.map(({ rule, detail }) => ({ rule: "audit", detail: `${rule}: ${detail}` })),
  ];
}
