/** What a run is charged, and how it settles with its organisation's ledger: the real objects, with interruptions. */
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { settledEnd } from "../../src/billing/charging.ts";
import { DEFAULT_PRICES } from "../../src/billing/default-prices.ts";
import { dollars } from "../../src/billing/ledger/reservations.ts";
import { ledgerObject } from "../../src/billing/rpc.ts";
import { RunSettling } from "../../src/billing/settling.ts";
import type { ChargeAudit } from "../../src/contract/audit.ts";
import { RunObject } from "../../src/index.ts";
import { runObject } from "../../src/kernel/kit/names.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { LiveViews } from "../../src/kernel/run/report.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { acceptedOnly, interposed } from "../kernel/hand-made.ts";
import { balanceOf, entriesOf, openPaying, payIn, settle, settleIn } from "../kernel/paying.ts";
import type { TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { byHand } from "../kernel/run-by-hand.ts";
import { script } from "../kernel/script.ts";

const { fees } = DEFAULT_PRICES;
const REFUSED = { fault: { kind: "status", status: 404 } } as const;
/** The charge of a scored rollout with one turn. */
const ONE = fees.rollout_micros + fees.thousand_turns_micros / 1000 + fees.scoring_micros;
const START = 1_790_000_000_000;
const DOLLAR = 1_000_000;

function asked(count: number, words: readonly string[] = [], max_concurrent = 8) {
  const model = script(RIGHT, { bad: [REFUSED] });
  return { environment: "gsm8k", dataset: questions(count, words), model, min_scored: 0, max_concurrent };
}

async function audited(api: TestApi, id: string): Promise<ChargeAudit> {
  return await (await api.ask(`/v1/runs/${id}/charges`)).json();
}

test("a rollout is charged once, equally in row, run, entry and trajectory; a provider's failure is free", async () => {
  const api = await openPaying(DOLLAR);
  const run = await api.finish(asked(3, ["bad"]));
  expect(await settle(api, run.id)).toBe(true);
  const entries = await entriesOf(api, run.id);
  expect(entries.map(({ kind, amount_micros }) => [kind, amount_micros])).toEqual([
    ["rollout", -ONE],
    ["rollout", -ONE],
  ]);
  expect((await api.run(run.id)).cost).toEqual({ policy_micros: null, judge_micros: 0, charged_micros: 2 * ONE });
  const rows = await api.results(run.id);
  expect(rows.map(({ reason, cost }) => [reason, cost?.charged_micros])).toEqual(
    expect.arrayContaining([
      ["provider", 0],
      [null, ONE],
    ]),
  );
  const [entry] = entries;
  expect(await api.rollout(entry?.source_id ?? "")).toMatchObject({ cost: { charged_micros: ONE } });
  expect(await balanceOf(api)).toMatchObject({ balance_micros: DOLLAR - 2 * ONE, reserved_micros: 0 });
  const found = { checked: 3, charged_micros: 2 * ONE, unsettled: 0, differences: [], next: null };
  expect(await audited(api, run.id)).toMatchObject(found);
});

test("a lost answer, and an object that dies before it has stored the answer, charge nothing twice", async () => {
  const api = await openPaying(DOLLAR);
  const run = await api.finish(asked(4));
  // As if the answer had been lost.
  const lost = await api.inRun(run.id, async (_, state) => {
    let calls = 0;
    const ACCOUNT = interposed(env.ACCOUNT, "settle", async (call) => {
      calls += 1;
      await call();
      throw new Error("the answer is lost");
    });
    const cut = new RunObject(state, { ...env, ACCOUNT });
    await forget(state.storage);
    await settleIn(cut, state.storage, 2);
    return calls;
  });
  expect(lost).toBeGreaterThan(0);
  await evictDurableObject(api.runStub(run.id));
  expect(await settle(api, run.id)).toBe(true);
  expect(await entriesOf(api, run.id)).toHaveLength(4);
  expect(await balanceOf(api)).toMatchObject({ balance_micros: DOLLAR - 4 * ONE, reserved_micros: 0 });
});

/** Resets the run to the state before any settlement. */
function forget(storage: DurableObjectStorage): void {
  const head = storage.kv.get<{ books?: object }>("head");
  if (head?.books === undefined) throw new Error("no run");
  storage.kv.put("head", { ...head, books: { ...head.books, ends: 0, settled: 0 } });
}

test("a deletion waits for what is not settled, and ends once it is", async () => {
  const api = await openPaying(DOLLAR);
  const run = await api.finish(asked(2));
  // The run's own instance has nothing to settle any more, so it does not come between.
  expect(await settle(api, run.id)).toBe(true);
  const waiting = await api.inRun(run.id, async (_, state) => {
    const ACCOUNT = interposed(env.ACCOUNT, "settle", async () => {
      throw new Error("the books are away");
    });
    forget(state.storage);
    const cut = new RunObject(state, { ...env, ACCOUNT });
    const closing = await cut.close();
    return { closing, freed: await cut.free() };
  });
  expect(waiting).toMatchObject({ closing: { quiet_at: null }, freed: false });
  await evictDurableObject(api.runStub(run.id));
  expect(await settle(api, run.id)).toBe(true);
  expect((await runObject(env, api.scope, run.id).close()).quiet_at).not.toBeNull();
  expect(await entriesOf(api, run.id)).toHaveLength(2);
});

test("a retry charges what it samples again, and a rescore charges its scoring", async () => {
  const api = await openPaying(DOLLAR);
  const { id } = await api.finish(asked(2, ["bad"]));
  await api.post(`/v1/runs/${id}/retry`, {});
  const run = await api.ended(id);
  expect(run.counts).toMatchObject({ planned: 3, failed: { provider: 2 }, scored: 1 });
  expect(await settle(api, id)).toBe(true);
  expect(await entriesOf(api, id)).toHaveLength(1);
  const response = await api.post(`/v1/runs/${id}/rescore`, { environment: "gsm8k" });
  const again: { id: string } = await response.json();
  await api.ended(again.id);
  expect(await settle(api, again.id)).toBe(true);
  const entries = await entriesOf(api, again.id);
  expect(entries.map(({ kind, amount_micros }) => [kind, amount_micros])).toEqual([["rescore", -fees.scoring_micros]]);
  expect(await audited(api, again.id)).toMatchObject({ checked: 2, differences: [] });
});

test("a run without enough money does not start, and the refusal says how much is missing", async () => {
  const api = await openPaying(0);
  const response = await api.post("/v1/runs", { ...asked(2), endpoint: { base_url: env.MODEL_URL } });
  const { error } = await response.json<{ error: { code: string; message: string; shortfall_micros: number } }>();
  const first = 2 * (fees.rollout_micros + fees.thousand_turns_micros / 100 + fees.scoring_micros);
  expect([response.status, error.code, error.shortfall_micros]).toEqual([402, "insufficient_balance", first]);
  const need = dollars(first);
  const message = `the first rollouts need ${need}, but the organisation's balance has $0.00 left: ${need} is missing`;
  expect(error.message).toBe(message);
  expect(await balanceOf(api)).toMatchObject({ reserved_micros: 0 });
});

test("a run dispatches within its reservation, reports that it lacks money, and continues with more", async () => {
  const first = fees.rollout_micros + fees.thousand_turns_micros / 100 + fees.scoring_micros;
  const api = await openPaying(first);
  const { id } = await api.start(asked(12, [], 1));
  // The rest does not pay for another rollout: the run reports it, immediately or after it has asked again.
  await settle(api, id, 2);
  await expectStatusReason(api, id, "over_budget");
  const waiting = await api.run(id);
  expect(waiting.counts.pending).toBeGreaterThan(0);
  // What does not pay for a rollout is left to other runs.
  await expect.poll(async () => (await balanceOf(api)).reserved_micros).toBe(0);
  expect((await balanceOf(api)).balance_micros).toBeGreaterThan(0);
  await payIn(api, DOLLAR);
  await runObject(env, api.scope, id).endpointChanged("account");
  const run = await api.ended(id);
  expect(run.counts.scored).toBe(12);
  expect(await settle(api, id)).toBe(true);
  expect(await balanceOf(api)).toMatchObject({ balance_micros: DOLLAR + first - 12 * ONE, reserved_micros: 0 });
});

test("a run that waits for money asks less and less often, and within a second of a notification", async () => {
  const money = { payer: "key_x", prices: { version: "test", fees, policy: null, judges: {} }, policy: null };
  await byHand({ money, num_examples: 3 }, async (run) => {
    const short = { by: "balance", budget_id: null, shortfall_micros: 1, reason: "there is no money" };
    const reservation = { micros: 0, until: run.now + 3_600_000, short };
    const ACCOUNT = interposed(env.ACCOUNT, "settle", async () => ({ settled: { ends: 0, pushes: 0 }, reservation }));
    const settling = new RunSettling({ ...env, ACCOUNT }, run.store, () => run.now);
    const waits: number[] = [];
    const askAndWait = async () => {
      await settling.advance(run.spec);
      waits.push((settling.nextAt(run.spec) ?? 0) - run.now);
    };
    for (let asks = 0; asks < 4; asks += 1) {
      run.now += waits.at(-1) ?? 0;
      await askAndWait();
    }
    settling.changed();
    waits.push((settling.nextAt(run.spec) ?? 0) - run.now);
    run.now += 1000;
    await askAndWait();
    expect(waits).toEqual([5000, 10_000, 20_000, 40_000, 1000, 5000]);
  });
});

async function expectStatusReason(api: TestApi, id: string, state: string): Promise<void> {
  await expect.poll(async () => (await api.run(id)).status_reason?.state).toBe(state);
}

test("a run whose reservation exceeds the largest number waits for money, and ends when cancelled", async () => {
  const api = await openPaying(DOLLAR);
  const template = await api.finish(asked(8));
  const dear = { ...fees, rollout_micros: Number.MAX_SAFE_INTEGER / 4 };
  const money = { payer: "key_x", prices: { version: "test", fees: dear, policy: null, judges: {} }, policy: null };
  const row = await acceptedOnly(api, template.id, { money });
  await runObject(env, api.scope, row.id).create(row.spec);
  await expectStatusReason(api, row.id, "over_budget");
  await api.post(`/v1/runs/${row.id}/cancel`, {});
  expect((await api.ended(row.id)).status).toBe("cancelled");
});

test("a client that follows an idle run is notified immediately when its status reason changes", async () => {
  const api = await openPaying(DOLLAR);
  const template = await api.finish(asked(1));
  const { id, spec } = await acceptedOnly(api, template.id, {});
  const events = await api.inRun(id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    store.create(spec);
    let state: "over_budget" | "draining" = "over_budget";
    const others = { judgeStatusReason: () => null, trainingStatusReason: () => null, training: () => null };
    const views = new LiveViews(store, () => START, { hindrance: () => ({ state, reason: null }), ...others });
    const told = () => {
      views.noteProgress(spec);
      return storage.sql.exec<{ n: number }>("select count(*) as n from events").one().n;
    };
    const waiting = [told(), told()];
    state = "draining";
    return [...waiting, told(), told()];
  });
  expect(events).toEqual([1, 1, 2, 2]);
});

test("tokens of a sold model are charged by kind, and shown with the prices of their endpoint", async () => {
  const api = await openPaying(DOLLAR);
  const template = await api.finish(asked(1));
  const tokens = { input_per_mtok_micros: 1_000_000, cached_input_per_mtok_micros: 100_000 };
  const policy = { ...tokens, output_per_mtok_micros: 2_000_000 };
  const money = {
    payer: "key_x",
    prices: { version: "test", fees, policy, judges: {} },
    policy: { input_per_mtok_micros: 500_000, output_per_mtok_micros: 500_000 },
  };
  const usage = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 };
  const counted = { ...usage, prompt_tokens_details: { cached_tokens: 40 } };
  const model = script([{ content: "\\boxed{4}", extra: { usage: counted } }]);
  const row = await acceptedOnly(api, template.id, { money, model });
  await runObject(env, api.scope, row.id).create(row.spec);
  const run = await api.ended(row.id);
  expect(run.report.usage).toMatchObject({ ...usage, cached_tokens: 40 });
  expect(run.cost).toEqual({ policy_micros: 54, judge_micros: 0, charged_micros: ONE + 60 + 4 + 14 });
  expect(await settle(api, row.id)).toBe(true);
  const [entry] = await entriesOf(api, row.id);
  expect(entry).toMatchObject({ payer: "key_x", price_version: "test", amount_micros: -(ONE + 78) });
  expect(entry?.lines).toContainEqual({ account: "revenue/cached_input_tokens", micros: 4 });
  const [result] = await api.results(row.id);
  expect(result?.token_usage).toMatchObject({ input_tokens: 100, cached_input_tokens: 40 });
  expect(await audited(api, row.id)).toMatchObject({ differences: [], charged_micros: ONE + 78 });
});

test("a run that was priced for an endpoint's old address does not call its new address", async () => {
  const api = await openPaying(DOLLAR);
  const template = await api.finish(asked(1));
  const moved = async (base_url: string) => {
    const given = { name: crypto.randomUUID(), base_url: env.MODEL_URL, probe: false };
    const { id: endpoint_id } = await (await api.post("/v1/endpoints", given)).json<{ id: string }>();
    const row = await acceptedOnly(api, template.id, { endpoint_id, model: script(RIGHT) });
    const headers = { "content-type": "application/json" };
    const patch = { method: "PATCH", headers, body: JSON.stringify({ base_url }) };
    expect((await api.ask(`/v1/endpoints/${endpoint_id}`, patch)).status).toBe(200);
    await runObject(env, api.scope, row.id).create(row.spec);
    await api.ended(row.id);
    const [result] = await api.results(row.id);
    expect(await audited(api, row.id)).toMatchObject({ differences: [] });
    return { error: result?.error?.error, charged: result?.cost?.charged_micros };
  };
  expect(await moved(`${env.MODEL_URL}/elsewhere`)).toEqual({ error: "EndpointMoved", charged: fees.rollout_micros });
  expect(await moved(`${env.MODEL_URL}/./`)).toEqual({ error: undefined, charged: ONE });
});

test("the deep audit names a changed row and a forged entry", async () => {
  const api = await openPaying(DOLLAR);
  const run = await api.finish(asked(2));
  expect(await settle(api, run.id)).toBe(true);
  await api.inRun(run.id, (_, { storage }) => {
    storage.sql.exec(`update rollouts set charge = '{"rollout":1}' where seq = 1`);
  });
  const { differences } = await audited(api, run.id);
  expect(differences).toContainEqual(
    expect.objectContaining({ what: "row: rollout", expected: fees.rollout_micros, actual: 1 }),
  );
  expect(differences.filter(({ what }) => what.startsWith("ledger"))).toEqual([]);
});

test("settlement reads only the needed columns of a row", async () => {
  await byHand({ num_examples: 2, rollouts_per_example: 1 }, (run) => {
    run.dispatch(2);
    run.answer();
    run.score();
    for (const { seq } of run.rows("done")) run.store.setRollout(seq, { judgements: "x".repeat(100_000) });
    const ends = run.store.ended.settled(0, 10);
    expect(ends.map(({ finish_seq }) => finish_seq)).toEqual([1, 2]);
    expect(JSON.stringify(ends).length).toBeLessThan(1000);
    expect(settledEnd(run.spec, run.rows("done")[0] ?? fail(), 0)).toEqual(settledEnd(run.spec, ends[0] ?? fail(), 0));
  });
});

function fail(): never {
  throw new Error("no rollout has ended");
}

test("a run that is not charged has no entries and no reservation, and its usage is counted anyway", async () => {
  const api = await openPaying(0, "off");
  const run = await api.finish(asked(2));
  expect(run.cost).toEqual({ policy_micros: null, judge_micros: 0, charged_micros: 0 });
  expect(await settle(api, run.id)).toBe(true);
  expect(await entriesOf(api, run.id)).toEqual([]);
  expect(await ledgerObject(env, api.scope.orgId).balance(api.scope.orgId)).toMatchObject({ entries: 0 });
  expect(await audited(api, run.id)).toMatchObject({ checked: 2, charged_micros: 0, differences: [] });
});
