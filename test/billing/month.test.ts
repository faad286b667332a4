/**
 * A month of three organisations through the API, with every event that concerns money. What they owe is recomputed
 * from their trajectories, and must agree to the micro-dollar with every view of the platform.
 */
import { env } from "cloudflare:workers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type {
  BalanceView,
  LedgerVerification,
  StatementList,
  StatementView,
  UsagePage,
} from "../../src/billing/wire.ts";
import type { ChargeAudit } from "../../src/contract/audit.ts";
import type { LedgerEntry } from "../../src/contract/money.ts";
import { settle } from "../kernel/paying.ts";
import {
  aTale,
  cancelled,
  dropPrices,
  endMonth,
  judgedBy,
  keepWithin,
  type Operator,
  openOperator,
  openTenant,
  type Prices,
  payByCard,
  presentMonth,
  registerTale,
  setPrices,
  storeFor,
  type Tenant,
} from "./month.ts";
import { type Asked, added, costOf, type Lines, storageOf, sumOf } from "./recompute.ts";

const PREFIX = crypto.randomUUID().slice(0, 8);
/** Odd numbers, so that every line is rounded, up or down. */
const FIRST: Prices = {
  version: `${PREFIX}-first`,
  fees: { rollout_micros: 61, thousand_turns_micros: 12_345, scoring_micros: 23, push_micros: 7, gb_day_micros: 1013 },
  policy: {
    input_per_mtok_micros: 1_370_501,
    cached_input_per_mtok_micros: 170_333,
    output_per_mtok_micros: 5_130_777,
  },
  judge: { input_per_mtok_micros: 333_333, cached_input_per_mtok_micros: 33_333, output_per_mtok_micros: 999_999 },
};
const SECOND: Prices = {
  version: `${PREFIX}-second`,
  fees: { rollout_micros: 89, thousand_turns_micros: 15_500, scoring_micros: 29, push_micros: 9, gb_day_micros: 1999 },
  policy: {
    input_per_mtok_micros: 1_500_500,
    cached_input_per_mtok_micros: 150_050,
    output_per_mtok_micros: 6_000_500,
  },
  judge: { input_per_mtok_micros: 400_400, cached_input_per_mtok_micros: 40_404, output_per_mtok_micros: 1_000_500 },
};
const MONTH = presentMonth();
const ENDS = [
  ...["cancelled/user", "failed/environment", "failed/provider"],
  ...["scored/null", "unscored/judge", "unscored/scorer"],
];

/** A run, and the facts that its charges follow from. */
interface Ran {
  readonly id: string;
  readonly asked: Asked;
}

/** What one organisation did, as the test recorded it. */
interface Known {
  readonly tenant: Tenant;
  readonly ran: readonly Ran[];
  readonly paid_in: number;
  readonly corrected: number;
  readonly stored: readonly number[];
}

const months: Month[] = [];
let operator: Operator;
let untouched: Tenant;
/** Tenants that pay, and what each has paid in and run so far. */
let played: Pick<Known, "tenant" | "ran" | "paid_in">[];

beforeAll(async () => {
  registerTale();
  operator = await openOperator();
  const tenants = await Promise.all([openTenant(), openTenant()]);
  untouched = await openTenant();
  await Promise.all([...tenants, untouched].map((tenant) => keepWithin(tenant, MONTH)));
  const topUp = async ({ scope }: Tenant, amount_micros: number) => {
    const body = { organization: scope.orgId, amount_micros };
    for (let told = 0; told < 2; told += 1) await operator("/v1/top-ups", body, `${PREFIX}-${scope.orgId}`);
    return amount_micros;
  };
  const paid = await Promise.all(
    tenants.map(async (tenant, at) => (await topUp(tenant, 900_000 + at)) + (await payByCard(tenant, 700 + at, 133))),
  );
  await setPrices(operator, FIRST, tenants);
  const before = await Promise.all(tenants.map(firstHalf));
  played = tenants.map((tenant, at) => ({ tenant, ran: before[at] ?? [], paid_in: paid[at] ?? 0 }));
});

// Each half has the time limit of a hook.
beforeAll(async () => {
  await setPrices(
    operator,
    SECOND,
    played.map(({ tenant }) => tenant),
  );
  const known = await Promise.all(
    played.map(async ({ tenant, ran: before, paid_in }, at): Promise<Known> => {
      const ran = [...before, ...(await secondHalf(tenant, before))];
      for (const { id } of ran) expect(await settle(tenant, id)).toBe(true);
      const [rollout] = await tenant.results(ran[0]?.id ?? "");
      const corrected = 40 + at;
      const about = { organization: tenant.scope.orgId, kind: "correction", source: rollout?.rollout_id };
      await operator("/v1/adjustments", { ...about, amount_micros: corrected, note: "an outage" });
      const stored = await storeFor(tenant, 1_234_567_890 + at, 2);
      return { tenant, ran, paid_in, corrected, stored };
    }),
  );
  await Promise.all(known.map(({ tenant }) => endMonth(tenant, MONTH)));
  months.push(...(await Promise.all(known.map(readMonth))));
});

afterAll(() => dropPrices([FIRST.version, SECOND.version]));

const of = ({ fees, policy, judge }: Prices): Asked => ({ fees, policy, judge });

/** Scored, unscored, failed by the provider and by the environment, cancelled, judged, and with own tokens. */
async function firstHalf(tenant: Tenant): Promise<Ran[]> {
  const { policy, failing, own, judge } = tenant.models;
  const runs = await Promise.all([
    tenant.finish(aTale(policy, ["fine", "odd", "breaks", "fine"])),
    tenant.finish(aTale(failing, ["any"])),
    tenant.finish(aTale(policy, ["good", "senseless"], judgedBy(judge))),
    tenant.finish(aTale(own, ["fine"])),
  ]);
  const asked = of(FIRST);
  const ran = runs.map(({ id }, at) => ({ id, asked: at === 3 ? { ...asked, policy: null } : asked }));
  return [...ran, { id: await cancelled(tenant), asked }];
}

/** With new prices: a retry uses the prices of the first start, a rescore of the judged run the new ones. */
async function secondHalf(tenant: Tenant, [plain, failed, judged]: readonly Ran[]): Promise<Ran[]> {
  const { policy, judge } = tenant.models;
  for (const { id } of [plain, failed].filter((run) => run !== undefined)) {
    expect((await tenant.post(`/v1/runs/${id}/retry`, {})).status).toBe(200);
    await tenant.ended(id);
  }
  const { id } = await (await tenant.post(`/v1/runs/${judged?.id}/rescore`, {})).json<{ id: string }>();
  await tenant.ended(id);
  const again = await tenant.finish(aTale(policy, ["fine", "odd"]));
  const asked = of(SECOND);
  return [
    { id, asked },
    { id: again.id, asked },
    { id: (await tenant.finish(aTale(policy, ["good"], judgedBy(judge)))).id, asked },
  ];
}

interface Month extends Known {
  readonly entries: readonly LedgerEntry[];
  readonly statement: StatementView;
  /** The expected cost of each rollout, by its id. */
  readonly costs: ReadonlyMap<string, Lines>;
  readonly storage: Lines;
  /** How the rollouts ended. */
  readonly ends: ReadonlySet<string>;
}

async function readMonth(all: Known): Promise<Month> {
  const { tenant, ran, stored } = all;
  const costs = new Map<string, Lines>();
  const ends = new Set<string>();
  for (const { id, asked } of ran) {
    for (const { rollout_id } of await tenant.results(id)) {
      const rollout = await tenant.rollout(rollout_id);
      costs.set(rollout_id, costOf(asked, rollout));
      ends.add(`${rollout.outcome}/${rollout.reason}`);
    }
  }
  const storage = added(stored.map((bytes) => storageOf(of(SECOND), bytes)));
  const statement = await tenant.read<StatementView>(`/v1/statements/${MONTH.name}`);
  return { ...all, costs, ends, storage, statement, entries: await ledgerOf(tenant) };
}

async function ledgerOf({ read }: Tenant): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for (let after = ""; ; ) {
    const page = await read<{ data: LedgerEntry[]; has_more: boolean }>(`/v1/ledger?limit=100${after}`);
    entries.push(...page.data);
    if (!page.has_more) return entries.reverse();
    after = `&after=${entries.at(-1)?.number}`;
  }
}

function revenueOf({ lines }: Pick<LedgerEntry, "lines">): Lines {
  const of = lines.filter(({ account }) => account.startsWith("revenue/"));
  return Object.fromEntries(of.map(({ account, micros }) => [account.slice("revenue/".length), micros]));
}

test("each rollout has the entry that follows from its trajectory and its run's prices, if any", async () => {
  for (const { entries, costs, ran, ends } of months) {
    expect([...ends].sort()).toEqual(ENDS);
    const posted = entries.filter(({ kind }) => kind === "rollout" || kind === "rescore");
    const paid = [...costs].filter(([, lines]) => sumOf(lines) > 0);
    expect(new Map(posted.map((entry) => [entry.source_id, revenueOf(entry)]))).toEqual(new Map(paid));
    expect(posted).toHaveLength(paid.length);
    expect(costs.size).toBeGreaterThan(paid.length);
    const first = new Set(ran.slice(0, 5).map(({ id }) => id));
    for (const { run_id, price_version } of posted) {
      expect(price_version).toBe(first.has(run_id ?? "") ? FIRST.version : SECOND.version);
    }
  }
});

test("the statement agrees with entries, daily usage, trajectories and the balances", async () => {
  for (const { tenant, entries, costs, storage, statement, paid_in, corrected } of months) {
    const owed = added([...costs.values(), storage]);
    const revenue = Object.entries(owed).map(([line, micros]) => ({ account: `revenue/${line}`, micros: -micros }));
    const said = statement.lines.filter(({ account }) => account.startsWith("revenue/"));
    expect(said.sort(byAccount)).toEqual(revenue.sort(byAccount));
    expect(added(entries.map(revenueOf))).toEqual(owed);
    expect(await usedIn(tenant)).toEqual({ cost: sumOf(owed), lines: owed });
    const accounts = added(
      entries.map(({ lines }) => Object.fromEntries(lines.map((one) => [one.account, one.micros]))),
    );
    const others = Object.entries(accounts).filter(([account, micros]) => account !== "balance" && micros !== 0);
    expect(statement.lines.sort(byAccount)).toEqual(
      others.map(([account, micros]) => ({ account, micros: -micros })).sort(byAccount),
    );
    const closing = paid_in + corrected - sumOf(owed);
    const opening = { opening_micros: 0, first_entry: 1, last_entry: entries.length, entries: entries.length };
    expect(statement).toMatchObject({ state: "closed", ...opening, closing_micros: closing });
    const listed = await tenant.read<StatementList>("/v1/statements?limit=1");
    expect(listed).toEqual({ object: "list", data: [statement], has_more: false });
    expect(statement.lines.reduce((sum, { micros }) => sum + micros, 0)).toBe(closing);
    expect(await tenant.read<BalanceView>("/v1/balance")).toMatchObject({
      balance_micros: closing,
      reserved_micros: 0,
    });
  }
});

const byAccount = (one: { account: string }, other: { account: string }) => (one.account < other.account ? -1 : 1);

/** Usage by the days of the month. */
async function usedIn({ read }: Tenant): Promise<{ cost: number; lines: Lines }> {
  const query = `start_time=${MONTH.from / 1000}&end_time=${MONTH.to / 1000}&bucket_width=1d&limit=31&group_by=model,kind`;
  const { data } = await read<UsagePage>(`/v1/usage?${query}`);
  const results = data.flatMap((bucket) => bucket.results);
  const cost = results.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
  return { cost, lines: added(results.map(({ lines }) => lines)) };
}

test("a payment reported twice is posted once, refunds are subtracted, and a won dispute changes nothing", async () => {
  for (const { entries, paid_in } of months) {
    const of = (name: string) => entries.filter(({ kind }) => kind === name).map(({ amount_micros }) => amount_micros);
    expect([of("top_up"), of("refund"), of("dispute"), of("correction")].map(({ length }) => length)).toEqual([
      2, 1, 2, 1,
    ]);
    const sum = [...of("top_up"), ...of("refund"), ...of("dispute")].reduce((all, micros) => all + micros, 0);
    expect(sum).toBe(paid_in);
    for (const { lines } of entries) expect(lines.reduce((all, { micros }) => all + micros, 0)).toBe(0);
  }
});

test("all entries of the month are in the archive, in order, and the ledger adds up", async () => {
  for (const { tenant, entries } of months) {
    const { objects } = await env.STORE.list({ prefix: `org/${tenant.scope.orgId}/ledger/${MONTH.name}/` });
    const texts: string[] = [];
    for (const { key } of objects) texts.push((await (await env.STORE.get(key))?.text()) ?? "");
    const lines = texts.flatMap((text) => text.trimEnd().split("\n"));
    expect(lines.map((line) => JSON.parse(line))).toEqual(entries);
    const found = await tenant.read<LedgerVerification>("/v1/ledger/verification");
    expect(found).toMatchObject({ ok: true, entries: entries.length });
  }
});

test("the platform's audit of each run finds no difference, and no organisation has another's entries", async () => {
  for (const { tenant, ran, entries, costs } of months) {
    for (const { id } of ran) {
      const audit: ChargeAudit = await (await tenant.ask(`/v1/runs/${id}/charges`)).json();
      expect(audit).toMatchObject({ differences: [], unsettled: 0, next: null });
    }
    const runs = new Set(ran.map(({ id }) => id));
    expect(entries.filter(({ run_id }) => run_id !== null && !runs.has(run_id))).toEqual([]);
    const { projectId } = tenant.scope;
    expect(entries.filter(({ project_id }) => project_id !== null && project_id !== projectId)).toEqual([]);
    const others = months.filter((other) => other.tenant !== tenant).flatMap((other) => other.entries);
    expect(others.filter(({ source_id }) => costs.has(source_id))).toEqual([]);
  }
  expect(await untouched.read<BalanceView>("/v1/balance")).toMatchObject({ entries: 0, balance_micros: 0 });
  expect(await ledgerOf(untouched)).toEqual([]);
  expect(await usedIn(untouched)).toEqual({ cost: 0, lines: {} });
});
