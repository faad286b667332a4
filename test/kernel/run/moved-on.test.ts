import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import { giveUp } from "../../../src/kernel/run/accounting.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { takeAnswer } from "../../../src/kernel/run/reconcile.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { acceptedOnly } from "../hand-made.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const hang = { fault: { kind: "hang" } } as const;

/** A run whose one rollout waits for its model, with its store opened a second time. */
async function waiting<T>(look: (store: RunStore, spec: RunSpec, now: number) => T): Promise<T> {
  const model = script([hang]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  const seen = await platform.inRun(run.id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    if (spec === null) throw new Error("no such run");
    return look(store, spec, Date.now());
  });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
  return seen;
}

test("a rollout that reported while it was being asked is not given up because of the earlier answer", async () => {
  const after = await waiting((store, spec, now) => {
    const row = store.bySeq(1);
    if (row === null) throw new Error("no such rollout");
    store.setRollout(1, { status: "scoring", ask_at: now + 30_000, asks: 0 });
    const heard = takeAnswer(store, spec, store.bySeq(1), { state: "answered" }, now);
    const ending = { from: "running", outcome: "failed", reason: "platform", message: "" } as const;
    giveUp(store, spec, row, ending, now);
    const kept = store.bySeq(1);
    store.setRollout(1, { status: "running", ask_at: row.ask_at, asks: row.asks });
    return { heard, kept };
  });
  expect(after.heard).toEqual({ resend: false, unit: null });
  expect(after.kept).toMatchObject({ status: "scoring", outcome: null, asks: 0 });
});

test("misses count in a row: a healthy rollout that was asked for hours survives one failing call", async () => {
  const row = await waiting((store, spec, now) => {
    store.setRollout(1, { asks: 40, misses: 11 });
    takeAnswer(store, spec, store.bySeq(1), { state: "running", next_event_at: now }, now);
    takeAnswer(store, spec, store.bySeq(1), { state: "unreachable" }, now);
    return store.bySeq(1);
  });
  expect(row).toMatchObject({ status: "running", misses: 1 });
});

/** The row of a rollout that answers `state` until it is given up, and how long that took. What it did is undone. */
async function givenUp(state: "unreadable" | "unavailable") {
  return await waiting((store, spec, now) => {
    let [clock, row] = [now, store.bySeq(1)];
    const undone = () =>
      store.transaction(() => {
        while (store.bySeq(1)?.status === "running") {
          clock = store.bySeq(1)?.ask_at ?? clock;
          takeAnswer(store, spec, store.bySeq(1), { state }, clock);
        }
        row = store.bySeq(1);
        throw new Error("undone");
      });
    expect(undone).toThrow("undone");
    return { row, after: clock - now };
  });
}

test("a rollout whose storage cannot be read is given up within a minute, as a platform failure that names it", async () => {
  const { row, after } = await givenUp("unreadable");
  expect(after).toBeLessThanOrEqual(60_000);
  expect(row).toMatchObject({ outcome: "failed", reason: "platform" });
  expect(row?.error).toContain(`the storage of its object cannot be read: ${row?.id}`);
});

test("a rollout whose object is unavailable for days is given up only after about a week", async () => {
  const { row, after } = await givenUp("unavailable");
  const days = after / (24 * 60 * 60_000);
  expect([days > 6.5, days < 7.5]).toEqual([true, true]);
  expect(row).toMatchObject({ outcome: "failed", reason: "platform" });
  expect(row?.error).toContain("its object was unavailable for a week");
});

test("an endpoint whose key cannot be opened ends its rollouts as platform failures, and no call is sent", async () => {
  const template = await platform.finish({
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
  });
  const model = script([...RIGHT, "unread"]);
  const row = await acceptedOnly(platform, template.id, { model });
  await env.DB.prepare("update endpoints set sealed_key = 'k0.AA.AA' where id = ?").bind(row.endpoint_id).run();
  const ended = await platform.ended(row.id);
  expect(ended.counts.failed).toEqual({ platform: 1 });
  expect(ended.report.calls).toBe(0);
  expect(await requestsOf(model)).toEqual([]);
});

test("a refused key that an endpoint repeats in its error is neither stored nor shown", async () => {
  const api_key = "sk-never-to-be-seen";
  const refusal = { status: 401, body: { error: { message: `bad key ${api_key}` } } };
  const model = script([{ fault: { kind: "status", ...refusal } }]);
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: questions(1),
    model,
    endpoint: { base_url: env.MODEL_URL, api_key },
  });
  expect(run.error?.message).toContain("[key]");
  const [row] = await platform.results(run.id);
  const rollout = await platform.rollout(row?.rollout_id ?? "");
  // The model's name is the script, which must contain the key.
  const shown = { ...run, model: "", row, rollout };
  expect(JSON.stringify(shown)).not.toContain(api_key);
});
