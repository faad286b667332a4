/** An organisation's ledger in the real object: over RPC, with its alarm and the real stores. */
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { AccountLedger } from "../../../src/billing/ledger/account-ledger.ts";
import type { SettleReply } from "../../../src/billing/rpc.ts";
import { RunObject } from "../../../src/index.ts";
import { isOf } from "../../kernel/platform.ts";
import { DAY_MS, endsOf, factsOf, HOUR_MS, newOrganization, type Organization, orderOf, topUp } from "./booking.ts";

const START = Date.UTC(2026, 10, 20, 12);

afterEach(() => {
  vi.restoreAllMocks();
});

async function at({ inside }: Organization, now: number): Promise<void> {
  await inside((object) => {
    object.now = () => now;
  });
}

const usageOf = async ({ id }: Organization) => {
  return (await env.DB.prepare("select * from usage_hours where org_id = ?").bind(id).all()).results;
};

test("an unused organisation is answered, and nothing is written for it", async () => {
  const org = await newOrganization("prepaid");
  const account = org.account();
  expect(await account.balance(org.id)).toEqual({
    ...{ billing: "prepaid", balance_micros: 0, reserved_micros: 0, credit_limit_micros: null },
    entries: 0,
  });
  const query = { before: null, limit: 10, kind: null, run_id: null, source_id: null };
  expect(await account.entries(query)).toEqual({ entries: [], next: null });
  expect(await account.month(org.id, "2026-11")).toBe(null);
  expect(await account.budgets(org.id)).toEqual([]);
  expect((await account.verify(org.id)).differences).toEqual([]);
  await account.changed();
  const written = await org.inside((_, { storage }) => [
    ...storage.sql.exec("select name from sqlite_master where name not like '\\_cf%' escape '\\'").toArray(),
    ...storage.kv.list(),
  ]);
  expect(written).toEqual([]);
});

test("a run's charges are entered once and in order, with repeats and gaps", async () => {
  const org = await newOrganization("postpaid");
  const account = org.account();
  const settle = async (first: number, prices: readonly number[]): Promise<SettleReply["settled"]> => {
    return (await account.settle(orderOf(org, "run_1", endsOf("run_1", first, prices)))).settled;
  };
  expect(await settle(1, [10, 0, 30])).toEqual({ ends: 3, pushes: 0 });
  expect(await settle(2, [0, 30, 5])).toEqual({ ends: 4, pushes: 0 });
  expect(await settle(6, [7])).toEqual({ ends: 4, pushes: 0 });
  expect(await account.balance(org.id)).toMatchObject({ balance_micros: -45, entries: 3 });
  const query = { before: null, limit: 2, kind: null, run_id: "run_1", source_id: null };
  const { entries, next } = await account.entries(query);
  expect(entries.map(({ number, amount_micros }) => [number, amount_micros])).toEqual([
    [3, -5],
    [2, -30],
  ]);
  expect(next).toBe(2);
  const found = await account.entriesOf("run_1", ["run_1-1", "run_1-2", "run_1-3"]);
  expect(found.entries.map(({ source_id, lines }) => [source_id, lines])).toEqual([
    ["run_1-3", lines(30)],
    ["run_1-1", lines(10)],
  ]);
});

function lines(price: number) {
  return [
    { account: "balance", micros: -price },
    { account: "revenue/rollout", micros: price },
  ];
}

test("a run without prices is counted and not charged, and may reserve any amount", async () => {
  const org = await newOrganization("prepaid");
  const run = { ...factsOf(org, "run_1"), price_version: null };
  expect(await org.account().reserve({ run, micros: 500 })).toMatchObject({ micros: 500, short: null });
  const { settled, reservation } = await org
    .account()
    .settle({ run, items: { ends: endsOf("run_1", 1, [9, 9]) }, reservation: 90 });
  expect([settled.ends, reservation?.micros]).toEqual([2, 90]);
  expect(await org.account().balance(org.id)).toMatchObject({ balance_micros: 0, reserved_micros: 0, entries: 0 });
  const used = await org.inside((_, { storage }) => storage.sql.exec("select counts, lines from usage").toArray());
  expect(used).toEqual([{ counts: '{"rollouts":2,"turns":4}', lines: "{}" }]);
});

test("an order with more items than the maximum is taken up to the maximum", async () => {
  const org = await newOrganization("postpaid");
  const all = endsOf("run_1", 1, new Array<number>(1500).fill(1));
  expect((await org.account().settle(orderOf(org, "run_1", all))).settled.ends).toBe(1000);
  expect((await org.account().settle(orderOf(org, "run_1", all))).settled.ends).toBe(1500);
  expect(await org.account().balance(org.id)).toMatchObject({ balance_micros: -1500 });
});

test("a posting is made once, also after it is archived, and a dispute may make the balance negative", async () => {
  const org = await newOrganization("prepaid");
  await at(org, START);
  const account = org.account();
  const order = topUp(org, 100, "pi_1");
  const first = await account.post(order);
  expect(first).toMatchObject({ posted: true, balance_micros: 100, entry: { number: 1, kind: "top_up" } });
  expect(await account.post(order)).toEqual({ ...first, posted: false });
  const dispute = { ...order, kind: "dispute", source_id: "dp_1", amount_micros: -130, against: "disputes" } as const;
  expect((await account.post(dispute)).balance_micros).toBe(-30);
  await org.inside((object) => {
    object.ledger.archiveBounds = { kept: 0, entriesAFile: 1 };
  });
  await org.alarmAt(START + DAY_MS);
  expect(await account.post(order)).toEqual({ posted: false, entry: null, balance_micros: -30 });
});

/** How often the organisation's runs were notified that there may be more money. */
function timesNotified({ id }: Organization): () => number {
  const told = vi.spyOn(RunObject.prototype, "endpointChanged");
  return () => told.mock.contexts.filter((run) => isOf(id, run)).length;
}

test("a run gets what the balance leaves, and is notified when there is more", async () => {
  const org = await newOrganization("prepaid");
  const told = timesNotified(org);
  const account = org.account();
  await account.post(topUp(org, 100));
  const ask = (run: string, micros: number) => account.settle(orderOf(org, run, [], micros));
  expect((await ask("run_1", 80)).reservation).toMatchObject({ micros: 80, short: null });
  expect((await ask("run_2", 50)).reservation).toMatchObject({
    micros: 20,
    short: {
      ...{ by: "balance", budget_id: null, shortfall_micros: 30 },
      reason: "the next rollouts need $0.00005, but the organisation's balance has $0.00002 left: $0.00003 is missing",
    },
  });
  const begun = { run: factsOf(org, "run_3"), micros: 10 };
  expect(await account.reserve(begun)).toMatchObject({ micros: 0, short: { shortfall_micros: 10 } });
  expect(await account.balance(org.id)).toMatchObject({ reserved_micros: 100 });
  expect(told()).toBe(0);
  await account.post(topUp(org, 40));
  await expect.poll(told).toBeGreaterThan(0);
  expect((await ask("run_2", 50)).reservation).toMatchObject({ micros: 50, short: null });
  expect(await account.reserve(begun)).toMatchObject({ micros: 10, short: null });
});

test("an amount that is too small for a run is left to others, and the run is notified of enough", async () => {
  const org = await newOrganization("prepaid");
  const told = timesNotified(org);
  const account = org.account();
  await account.post(topUp(org, 150));
  const ask = async (run: string, ends: readonly number[] = []) => {
    const order = { ...orderOf(org, run, endsOf(run, 1, ends), 400), least: 100 };
    return (await account.settle(order)).reservation;
  };
  expect(await ask("run_1")).toMatchObject({ micros: 150, short: { shortfall_micros: 250 } });
  expect(await ask("run_2")).toMatchObject({ micros: 0, short: { shortfall_micros: 400 } });
  // The rest is too small for either run, and neither is notified.
  expect(await ask("run_1", [60])).toMatchObject({ micros: 0, short: { shortfall_micros: 310 } });
  expect(await account.balance(org.id)).toMatchObject({ balance_micros: 90, reserved_micros: 0 });
  expect(told()).toBe(0);
  await account.post(topUp(org, 10));
  await expect.poll(told).toBeGreaterThan(1);
  expect(await ask("run_2")).toMatchObject({ micros: 100 });
});

test("the missing amount includes debts and overspent budgets", async () => {
  const org = await newOrganization("prepaid");
  await at(org, START);
  const account = org.account();
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 1, [9_003_148]), 0));
  const begun = { run: factsOf(org, "run_2"), micros: 6400 };
  expect((await account.reserve(begun)).short).toEqual({
    ...{ by: "balance", budget_id: null, shortfall_micros: 9_009_548 },
    reason: "the first rollouts need $0.0064, but the organisation's balance has −$9.003148 left: $9.009548 is missing",
  });
  await account.post(topUp(org, 100_000_000));
  const budget_id = await org.budget(1_000_000);
  expect((await account.reserve(begun)).short).toEqual({
    ...{ by: "budget", budget_id, shortfall_micros: 8_009_548 },
    reason:
      "the first rollouts need $0.0064, but this month's budget of the organisation has −$8.003148 left: $8.009548 is missing",
  });
});

test("a reservation that is not renewed ends with its lease, and a used one shrinks", async () => {
  const org = await newOrganization("prepaid");
  await at(org, START);
  const account = org.account();
  await account.post(topUp(org, 100));
  await account.settle(orderOf(org, "run_1", [], 60));
  const { reservation } = await account.settle(orderOf(org, "run_1", endsOf("run_1", 1, [25])));
  expect(reservation?.micros).toBe(35);
  expect(await account.balance(org.id)).toMatchObject({ balance_micros: 75, reserved_micros: 35 });
  await org.alarmAt(START + HOUR_MS);
  expect(await account.balance(org.id)).toMatchObject({ balance_micros: 75, reserved_micros: 0 });
});

test("budgets of organisation, project and key limit reservations, and start again each month", async () => {
  const org = await newOrganization("off");
  await at(org, START);
  const account = org.account();
  const ask = async (micros: number) => (await account.settle(orderOf(org, "run_1", [], micros))).reservation;
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 1, [40]), 0));
  const whole = await org.budget(100);
  expect(await ask(90)).toMatchObject({ micros: 60, short: { by: "budget", budget_id: whole, shortfall_micros: 30 } });
  const key = await org.budget(70, ["key", "key_1"]);
  await org.budget(5, ["project", "pj_other"]);
  expect(await ask(90)).toMatchObject({ micros: 30, short: { budget_id: key } });
  expect(await account.budgets(org.id)).toContainEqual({
    ...{ budget_id: key, spent_micros: 40, reserved_micros: 30, thresholds: [50] },
  });
  await at(org, START + 11 * DAY_MS);
  expect(await ask(90)).toMatchObject({ micros: 70, short: { budget_id: key } });
  expect(await ask(70)).toMatchObject({ micros: 70, short: null });
});

test("each threshold of a budget is reported once a month, and again after a kill before it was noted", async () => {
  const org = await newOrganization("off");
  await at(org, START);
  const lines: string[] = [];
  vi.spyOn(console, "error").mockImplementation((line: string) => {
    if (line.includes(org.id)) lines.push(line);
  });
  const notices = () => lines.map((line): { percent: number } => JSON.parse(line)).map(({ percent }) => percent);
  const budget_id = await org.budget(100);
  await org.account().settle(orderOf(org, "run_1", endsOf("run_1", 1, [85])));
  await org.alarmAt(START + 1000);
  await org.account().settle(orderOf(org, "run_1", endsOf("run_1", 2, [4])));
  await org.alarmAt(START + 2000);
  await org.inside(
    (_, { storage }) => void storage.sql.exec("update notices set delivered_at = null where percent = 80"),
  );
  await org.account().settle(orderOf(org, "run_1", endsOf("run_1", 3, [30])));
  await org.alarmAt(START + 3000);
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    ...{
      time: expect.any(String),
      level: "notice",
      message: "budget.threshold",
      org_id: org.id,
      budget_id,
      month: "2026-11",
      percent: 50,
    },
    ...{ target_kind: "organization", target_id: org.id, limit_micros: 100, spent_micros: 85 },
  });
  expect(notices()).toEqual([50, 80, 80, 100]);
});

test("hours of usage are copied within a minute, and a later copy overwrites the earlier one", async () => {
  const org = await newOrganization("prepaid");
  await at(org, START);
  const account = org.account();
  await account.post(topUp(org, 100));
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 1, [10, 0]), 20));
  await org.alarmAt(START + 30_000);
  expect(await usageOf(org)).toEqual([]);
  await org.alarmAt(START + 60_000);
  expect(await usageOf(org)).toMatchObject([
    {
      ...{ hour: START / 1000, project_id: "pj_1", payer: "key_1", environment: "gsm8k", model: "m", kind: "eval" },
      ...{ counts: '{"rollouts":2,"turns":4}', lines: '{"rollout":10}' },
    },
  ]);
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 3, [5]), 0));
  await org.alarmAt(START + 180_000);
  expect(await usageOf(org)).toMatchObject([{ counts: '{"rollouts":3,"turns":6}', lines: '{"rollout":15}' }]);
  expect(await account.verify(org.id)).toMatchObject({ entries: 3, balance_micros: 85, differences: [] });
});

test("an alarm closes a month once it is over, and nothing is posted to it afterwards", async () => {
  // Far ahead, so that the platform itself fires none of these alarms.
  const org = await newOrganization("postpaid");
  const account = org.account();
  for (const [index, month] of ["2096-08", "2096-09", "2096-11"].entries()) {
    await at(org, Date.parse(`${month}-10`));
    await account.settle(orderOf(org, "run_1", endsOf("run_1", index + 1, [10 + index])));
  }
  const end = Date.parse("2096-12-01");
  await org.alarmAt(end - 1);
  expect((await account.closedMonths(org.id, null, 9)).map(({ month }) => month)).toEqual(["2096-09", "2096-08"]);
  expect(await org.inside((_, { storage }) => storage.getAlarm())).toBe(end);
  await org.alarmAt(end);
  const closed = await account.closedMonths(org.id, null, 2);
  expect(closed).toMatchObject([
    { month: "2096-11", opening_micros: -21, closing_micros: -33, entries: 1, closed_at: end },
    { month: "2096-09", accounts: { balance: -11, "revenue/rollout": 11 } },
  ]);
  expect(await account.closedMonths(org.id, "2096-09", 2)).toMatchObject([{ month: "2096-08", first_entry: 1 }]);
  await at(org, end - 1);
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 4, [1])));
  expect(await account.month(org.id, "2096-11")).toEqual(closed[0]);
  expect(await account.month(org.id, "2096-12")).toMatchObject({ entries: 1, closed_at: null });
});

test("beyond a thousand buckets in an hour, usage is counted as other", async () => {
  const org = await newOrganization("off");
  const uses = await org.inside(async (object, { storage }) => {
    for (let at = 1; at <= 1003; at += 1) {
      const run = { ...factsOf(org, `run_${at}`), price_version: null, model: `m${at}` };
      await object.ledger.settle({ run, items: { ends: endsOf(`run_${at}`, 1, [0]) }, reservation: null });
    }
    return storage.sql.exec("select model, counts from usage where payer = 'other'").toArray();
  });
  expect(uses).toEqual([{ model: "other", counts: '{"rollouts":3,"turns":6}' }]);
});

/** The messages to the deployment's `send_email` binding, which refuses the first ones. */
function postbox(refuses: number) {
  const letters: { to: unknown; subject: string }[] = [];
  let tries = 0;
  const send = (letter: { to?: unknown; subject?: string }): Promise<EmailSendResult> => {
    tries += 1;
    if (tries <= refuses) return Promise.reject(new Error("not now"));
    letters.push({ to: letter.to, subject: letter.subject ?? "" });
    return Promise.resolve({ messageId: "1" });
  };
  return { letters, tries: () => tries, env: { ...env, ALERTS: { send }, ALERTS_FROM: "billing@example.com" } };
}

test("owners get thresholds by e-mail if the deployment sends any; an always refused one is given up", async () => {
  for (const refuses of [2, 1000]) {
    const org = await newOrganization("off");
    await env.DB.batch([
      env.DB.prepare("insert into people (id, email, created_at) values (?, ?, 1)").bind(
        `per_${org.id}`,
        `${org.id}@example.com`,
      ),
      env.DB.prepare("insert into members values (?, ?, 'owner', null, 1)").bind(org.id, `per_${org.id}`),
    ]);
    await org.budget(10);
    const box = postbox(refuses);
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    await org.inside(async (_, state) => {
      let now = START;
      const ledger = new AccountLedger(state, box.env, () => now);
      await ledger.settle(orderOf(org, "run_1", endsOf("run_1", 1, [6])));
      for (let round = 0; round < 10; round += 1) {
        await ledger.tend();
        now += HOUR_MS;
      }
    });
    const subject = "50 % of this month's budget of the organization is spent";
    expect(box.letters).toEqual(refuses === 2 ? [{ to: [`${org.id}@example.com`], subject }] : []);
    expect(box.tries()).toBe(refuses === 2 ? 3 : 8);
  }
});
