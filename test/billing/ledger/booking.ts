/** Orders as runs and the API send them to an organisation's ledger, and the real object that keeps it. */
import { env } from "cloudflare:workers";
import { AccountObject } from "../../../src/billing/object.ts";
import type { LedgerRpc, Posting, RunFacts, SettledItem, SettleOrder } from "../../../src/billing/rpc.ts";
import { ledgerObject } from "../../../src/billing/rpc.ts";
import type { BillingMode } from "../../../src/contract/money.ts";
import { inside } from "../../kernel/platform.ts";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export interface Organization {
  readonly id: string;
  readonly account: () => LedgerRpc;
  readonly inside: <T>(use: (object: AccountObject, state: DurableObjectState) => T | Promise<T>) => Promise<T>;
  /** Fires the object's alarm at a time: epoch milliseconds. */
  readonly alarmAt: (at: number) => Promise<void>;
  readonly budget: (limit_micros: number, of?: readonly [kind: string, id: string]) => Promise<string>;
}

/** An organisation with a row in the database. */
export async function newOrganization(
  billing: BillingMode,
  credit_limit_micros: number | null = null,
): Promise<Organization> {
  const id = `org_${crypto.randomUUID()}`;
  await env.DB.prepare(
    "insert into organizations (id, name, limits, created_at, billing, credit_limit_micros) values (?, ?, '{}', 1, ?, ?)",
  )
    .bind(id, "Acme", billing, credit_limit_micros)
    .run();
  const stub = (): DurableObjectStub => env.ACCOUNT.getByName(`org/${id}`);
  return {
    id,
    account: () => ledgerObject(env, id),
    inside: (use) => inside(stub(), AccountObject, use),
    alarmAt: (at) =>
      inside(stub(), AccountObject, async (object) => {
        object.now = () => at;
        await object.alarm();
      }),
    budget: async (limit_micros, [kind, target] = ["organization", id]) => {
      const budget = `bud_${crypto.randomUUID()}`;
      await env.DB.prepare("insert into budgets values (?, ?, ?, ?, ?, 1, 1)")
        .bind(budget, id, kind, target, limit_micros)
        .run();
      await ledgerObject(env, id).changed();
      return budget;
    },
  };
}

export function factsOf({ id: orgId }: Pick<Organization, "id">, run_id: string): RunFacts {
  const facts = { environment: "gsm8k", model: "m", kind: "eval", price_version: "v1" } as const;
  return { scope: { orgId, projectId: "pj_1" }, run_id, payer: "key_1", ...facts };
}

/** Ends of a run, numbered from `first`, with these prices. */
export function endsOf(run_id: string, first: number, prices: readonly number[]): SettledItem[] {
  return prices.map((price, index) => {
    const n = first + index;
    const lines = price === 0 ? {} : { rollout: price };
    return { n, kind: "rollout", source_id: `${run_id}-${n}`, at: 0, lines, use: { rollouts: 1, turns: 2 } };
  });
}

export function orderOf(
  organization: Pick<Organization, "id">,
  run_id: string,
  ends: readonly SettledItem[],
  reservation: number | null = null,
): SettleOrder {
  return { run: factsOf(organization, run_id), items: { ends }, reservation };
}

export function topUp(
  { id: orgId }: Pick<Organization, "id">,
  amount_micros: number,
  source_id = crypto.randomUUID(),
): Posting {
  const of = { orgId, kind: "top_up", period: "", project_id: null, note: null } as const;
  return { ...of, source_id, amount_micros, against: "paid_in/operator" };
}
