/** Releases of what a run's cap reserves for lost calls: who may do it, of what, after kills, and with late reports. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { auditObject } from "../../../src/accounts/rpc.ts";
import { AuditList } from "../../../src/accounts/wire.ts";
import { RunView } from "../../../src/contract/run.ts";
import { RolloutObject } from "../../../src/index.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { answer, giveUp } from "../../../src/kernel/run/accounting.ts";
import { takeAsks, Wakes } from "../../../src/kernel/run/cap.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { ReleaseNotifier, releaseLostCalls } from "../../../src/kernel/run/releases.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { admit } from "../../accounts/admit.ts";
import { Life } from "../life.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { byHand, type Hand } from "../run-by-hand.ts";
import { reportOf } from "../run-rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
/** Headers of an owner, whose key is valid for the whole organisation. */
let headers: Record<string, string>;
beforeAll(async () => {
  platform = await openPlatform();
  const token = await admit(platform.scope, { project_id: null });
  headers = { authorization: `Bearer ${token}`, "rollcall-project": platform.scope.projectId };
});

const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
const endpoint = { base_url: env.MODEL_URL, prices };
const capped = { environment: "gsm8k", endpoint, sampling: { max_tokens: 100 }, min_scored: 0 } as const;
const LOSES_ONE = [{ fault: { kind: "reset" }, times: 1, reply: "\\boxed{4}" }] as const;
const MONEY = { payer: "key_a", prices: null, policy: prices, max_cost_micros: 10_000 };
const GONE = { from: "running", outcome: "failed", reason: "platform", message: "gone" } as const;
const WELL = { failure: null, cancelled: null } as const;
const NONE = { calls: 0, micros: 0 };

async function release(api: TestApi, id: string): Promise<RunView> {
  const reply = await api.post(`/v1/runs/${id}/release-lost-calls`, {}, headers);
  expect(reply.status).toBe(200);
  return RunView.parse(await reply.json());
}

async function logged({ ask }: TestApi, target: string) {
  const query = `action=releaseLostCalls&target=${target}`;
  return AuditList.parse(await (await ask(`/v1/audit-log?${query}`)).json()).data;
}

/** The first rollout has reserved 4,000 micro-dollars and could not be reached; the second may spend as much. */
function oneOfTwoLost(run: Hand) {
  run.dispatch(2);
  const ask = { slot: 0, attempt: 0, asks: 1, spent: 0, need: 1000, wish: 4000 };
  takeAsks(
    run.store,
    run.spec,
    [0, 1].map((group) => ({ ...ask, group, wish: 4000 + 4000 * group })),
  );
  const [lost] = run.rows("running");
  if (lost === undefined) throw new Error("nothing runs");
  giveUp(run.store, run.spec, lost, GONE, run.now);
  return lost;
}

const TWO = { money: MONEY, num_examples: 3, rollouts_per_example: 1, min_scored: 0 };

test("a release frees reservations of what has ended, not of calls in flight, and a second one changes nothing", async () => {
  await byHand(TWO, (run) => {
    oneOfTwoLost(run);
    const held = { calls: 1, micros: 4000 };
    const { out } = run.store.head().cap;
    expect(out).toBeGreaterThan(1000);
    expect(run.store.head().cap).toMatchObject({ spent: 4000, lost: held, released: NONE });
    releaseLostCalls(run.store, 1);
    const after = run.store.head();
    expect(after.cap).toMatchObject({ spent: 0, out, lost: NONE, released: held });
    releaseLostCalls(run.store, 2);
    expect(run.store.head()).toBe(after);
    expect(run.store.lostReservations.unnotified).toEqual({ entry: 1, ...held });
  });
});

test("usage reported after a release counts as spent, once and even above the cap, and then nothing more is reserved", async () => {
  const again = vi.spyOn(RolloutObject.prototype, "askAgain").mockResolvedValue();
  await byHand(TWO, async (run) => {
    const lost = oneOfTwoLost(run);
    releaseLostCalls(run.store, 1);
    const ask = { group: 1, slot: 0, attempt: 0, asks: 2, spent: 0, need: 9000, wish: 9000 };
    expect(takeAsks(run.store, run.spec, [ask])).toEqual([{ ceiling: 9000 }]);
    const spent = { micros: 3900, lost: { calls: 1, micros: 300 } };
    for (let times = 0; times < 2; times += 1) {
      answer(run.store, run.spec, { ...reportOf(lost, WELL), spent }, run.now);
      // What it lost itself was released with the rest.
      expect(run.store.head().cap).toMatchObject({ spent: 3600, out: 9000, lost: NONE, released: { micros: 4000 } });
    }
    await new Wakes(env, run.store).send(run.spec);
    expect(again.mock.calls).toEqual([[[run.store.bySeq(2)?.id], true]]);
    const next = { ...ask, asks: 3, spent: 2000, need: 5000, wish: 9000 };
    expect(takeAsks(run.store, run.spec, [next])).toEqual([{ ceiling: null }]);
    expect(run.store.head().cap).toMatchObject({ spent: 3600, out: 2000 });
  });
  again.mockRestore();
});

test("an owner releases what a run reserves, and the audit log records who did so, when, and how much it was", async () => {
  const request = { ...capped, dataset: questions(1), model: script(LOSES_ONE), max_cost_micros: 1_000_000 };
  const run = await platform.finish(request);
  const held = run.report.lost_reservations;
  expect(held).toMatchObject({ calls: 1 });
  const { report } = await release(platform, run.id);
  expect(report.lost_reservations).toEqual({ ...NONE, released: held });
  expect(report.counted_micros).toBe((run.report.counted_micros ?? 0) - (held?.micros ?? 0));
  expect(report.usage.lost).toEqual(run.report.usage.lost);
  expect((await release(platform, run.id)).report).toEqual(report);
  const [second, first] = await logged(platform, run.id);
  expect(first).toMatchObject({ who: expect.stringMatching(/^key_/), status: 200, released: held });
  expect(first?.at).toBeGreaterThan(1_000_000_000);
  expect(second).toMatchObject({ status: 200 });
  expect(second?.released).toBeUndefined();
});

test("a key of one project cannot release anything, even if it may do everything else there", async () => {
  const run = await platform.finish({
    ...capped,
    dataset: questions(1),
    model: script(RIGHT),
    max_cost_micros: 100_000,
  });
  const reply = await platform.post(`/v1/runs/${run.id}/release-lost-calls`, {});
  expect([reply.status, await reply.json()]).toMatchObject([403, { error: { code: "forbidden" } }]);
  expect(await logged(platform, run.id)).toEqual([]);
});

test("a run whose cap was used up by lost calls continues once they are released and it is retried", async () => {
  const loses = [{ fault: { kind: "reset" }, times: 2, reply: "\\boxed{4}" }] as const;
  const request = { ...capped, dataset: questions(6), model: script(loses), max_concurrent: 1, max_cost_micros: 3500 };
  const run = await platform.finish(request);
  expect(run.counts.pending).toBeGreaterThan(0);
  const retried = () => platform.post(`/v1/runs/${run.id}/retry`, { classes: ["budget"] });
  expect((await retried()).status).toBe(409);
  await release(platform, run.id);
  expect((await retried()).status).toBe(200);
  const ended = await platform.ended(run.id);
  expect(ended.counts.scored).toBeGreaterThan(run.counts.scored);
  expect(ended.report.counted_micros).toBeLessThanOrEqual(request.max_cost_micros);
  expect(await requestsOf(request.model)).toHaveLength(ended.report.calls);
});

const MOST_WRITES = 20;

/** Releases in an instance that dies after this many writes. False: it needed fewer. */
async function dies(id: string, writes: number, held: { calls: number; micros: number }): Promise<boolean> {
  const life = new Life(writes);
  const { orgId, projectId: project_id } = platform.scope;
  const change = { at: writes, who: "key_1", action: "releaseLostCalls", project_id, target: id, request_id: "cut" };
  const entry = await auditObject(env, orgId).begin(change);
  await platform.inRun(id, async (_, { storage }) => {
    const before = new RunStore(storage, ACCOUNTING_HOOKS);
    const { cap, ...head } = before.head();
    before.saveHead({ ...head, cap: { ...cap, spent: cap.spent + held.micros, lost: held, released: NONE } });
    const store = new RunStore(life.storage(storage), ACCOUNTING_HOOKS);
    const spec = store.spec();
    if (spec === null || entry === null) throw new Error("no run, or no log");
    try {
      releaseLostCalls(store, entry);
      await new ReleaseNotifier(env, store.lostReservations, () => Date.now()).tell(spec, new Subrequests());
    } catch (thrown) {
      if (!life.over) throw thrown;
    }
  });
  // The cache of the enclosing object is out of date.
  await expect(platform.inRun(id, (_, state) => state.abort("killed"))).rejects.toThrow("killed");
  return life.over;
}

test("a release that is killed between any two writes frees the reservations once, and is in the audit log once", async () => {
  const request = { ...capped, dataset: questions(1), model: script(LOSES_ONE), max_cost_micros: 1_000_000 };
  const { id, report } = await platform.finish(request);
  const { calls = 0, micros = 0 } = report.lost_reservations ?? {};
  const held = { calls, micros };
  const after = await release(platform, id);
  const count = async () => (await logged(platform, id)).filter(({ released }) => released !== undefined);
  let killed = 0;
  while (killed < MOST_WRITES && (await dies(id, killed, held))) {
    killed += 1;
    expect((await release(platform, id)).report).toEqual(after.report);
    const told = await count();
    expect(told).toHaveLength(killed + 1);
    expect(told[0]).toMatchObject({ status: 200, released: held });
  }
  expect(killed).toBeGreaterThan(2);
  expect(killed).toBeLessThan(MOST_WRITES);
});
