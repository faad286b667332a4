import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { liveQuota, noteRunning, objectsEach } from "../../../src/kernel/environment/live-objects.ts";
import { Dispatcher } from "../../../src/kernel/run/dispatcher.ts";
import { RunLeases } from "../../../src/kernel/run/leases.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { GroupOpenings } from "../../../src/kernel/run/training/plan.ts";
import { openPlatform } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

const local = { ...env, LIVE_OBJECT_CEILING: 100 };

function owned(run_id: string, orgId = "org") {
  return { run_id, scope: { orgId, projectId: "pj" } };
}

test("organisations have equal shares of the limit, however many runs one has", () => {
  const many = ["a", "b", "c"].map((id) => owned(id, "busy"));
  for (const run of many) noteRunning(local, run, 0, false);
  const alone = owned("d", "alone");
  expect(liveQuota(local, alone, 0)).toBe(50);
  expect(many.map((run) => liveQuota(local, run, 0))).toEqual([17, 17, 16]);
  for (const run of [...many, alone]) noteRunning(local, run, 0, true);
});

test("runs share the limit on live objects, a new run takes only what the others leave, and an ended run frees its share", () => {
  expect(liveQuota(env, owned("deployed"), 5000)).toBe(Number.POSITIVE_INFINITY);
  expect(liveQuota(local, owned("a"), 0)).toBe(100);
  noteRunning(local, owned("a"), 100, false);
  expect(liveQuota(local, owned("b"), 0)).toBe(1);
  expect(liveQuota(local, owned("a"), 100)).toBe(50);
  noteRunning(local, owned("a"), 50, false);
  expect(liveQuota(local, owned("b"), 1)).toBe(50);
  noteRunning(local, owned("a"), 0, true);
  expect(liveQuota(local, owned("b"), 50)).toBe(100);
  noteRunning(local, owned("b"), 0, true);
});

test("a rollout with a database counts as two, because it keeps as many more files open", () => {
  const digest = "";
  const of = (id: string) => objectsEach({ environment: { id, version: "1.0.0", digest } });
  expect([of("wordle"), of("tool-sql"), of("nowhere")]).toEqual([1, 2, 1]);
  expect(liveQuota(local, owned("sql"), 0, 2)).toBe(50);
  noteRunning(local, owned("sql"), 45, false, 2);
  expect(liveQuota(local, owned("plain"), 0)).toBe(10);
  expect(liveQuota(local, owned("sql"), 45, 2)).toBe(25);
  noteRunning(local, owned("sql"), 0, true, 2);
  noteRunning(local, owned("plain"), 0, true);
});

test("a run that waits for the limit says so, with the number of objects and of its rollouts", async () => {
  const api = await openPlatform();
  const model = script([{ fault: { kind: "hang" } }]);
  const asked = { environment: "gsm8k", dataset: questions(6), model, max_concurrent: 2 };
  const { id } = await api.start(asked);
  const flows = await api.inRun(id, (_, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    const spec = store.spec();
    if (spec === null) throw new Error("no such run");
    const wide = { ...spec, max_concurrent: 6 };
    const narrow = { ...env, LIVE_OBJECT_CEILING: 2 };
    const leases = new RunLeases(env, store, Date.now);
    const under = (bindings: Env) => new Dispatcher(bindings, store, Date.now, new GroupOpenings(store), leases);
    return [
      under(narrow).hindrance(wide),
      // It requested no more, or nothing limits it.
      under(narrow).hindrance(spec),
      under(env).hindrance(wide),
    ];
  });
  expect(flows.slice(1)).toEqual([null, null]);
  expect(flows[0]).toEqual({
    state: "over_limit",
    reason: expect.stringContaining("allows 2 live objects, but this run needs 2"),
  });
  noteRunning(local, owned(id), 0, true);
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
});
