/** Statements: what an organisation was charged and paid in a month. */
import type { Caller } from "../contract/identity.ts";
import { seconds } from "../kernel/db/page.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import type { MonthState } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";
import type { StatementList, StatementView } from "./wire.ts";

/** The account that holds the organisation's balance. */
const OWN = "balance";

/** The caller. A caller of a single project sees no statements. */
type Asker = Pick<Caller, "orgId" | "projectId">;

/** A page of closed months. `before`: the last month of the previous page. */
export async function listStatements(
  env: Env,
  { orgId, projectId }: Asker,
  page: { readonly before: string | null; readonly limit: number },
): Promise<Result<StatementList>> {
  if (projectId !== null) return ofOrganization();
  const months = await ledgerObject(env, orgId).closedMonths(orgId, page.before, page.limit + 1);
  const data = months.slice(0, page.limit).map(viewOf);
  return { ok: true, value: { object: "list", data, has_more: months.length > page.limit } };
}

export async function readStatement(
  env: Env,
  { orgId, projectId }: Asker,
  month: string,
  now: number,
): Promise<Result<StatementView>> {
  if (projectId !== null) return ofOrganization();
  const present = new Date(now).toISOString().slice(0, "2026-11".length);
  const ledger = ledgerObject(env, orgId);
  const state = month > present ? null : await ledger.month(orgId, month);
  if (state !== null) return { ok: true, value: viewOf(state) };
  if (month !== present) return refuse("not_found", `no statement of ${month}`, "month");
  const { balance_micros } = await ledger.balance(orgId);
  return {
    ok: true,
    value: viewOf({ month, ...NOTHING_YET, opening_micros: balance_micros, closing_micros: balance_micros }),
  };
}

const NOTHING_YET = { entries: 0, first_entry: null, last_entry: null, accounts: {}, closed_at: null };

function ofOrganization(): Result<never> {
  return refuse("forbidden", "statements cover the whole organisation, but this key is for one project", null);
}

/** A month, even one without entries. */
type Shown = Omit<MonthState, "first_entry" | "last_entry"> & Pick<StatementView, "first_entry" | "last_entry">;

/** The lines of an entry add up to 0: the other accounts' changes, negated, are the change of the balance. */
function viewOf({ month, accounts, closed_at, ...state }: Shown): StatementView {
  const others = Object.entries(accounts).filter(([account, micros]) => account !== OWN && micros !== 0);
  const byName = others.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    object: "statement",
    month,
    state: closed_at === null ? "open" : "closed",
    opening_micros: state.opening_micros,
    closing_micros: state.closing_micros,
    lines: byName.map(([account, micros]) => ({ account, micros: -micros })),
    entries: state.entries,
    first_entry: state.first_entry,
    last_entry: state.last_entry,
    closed_at: closed_at === null ? null : seconds(closed_at),
  };
}
