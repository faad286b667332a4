/** What a training run waits for besides its trainer: evals of its weights, and engines that do not serve them yet. */

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunObject } from "../../../../src/index.ts";
import { requestCancel } from "../../../../src/kernel/run/accounting.ts";
import { Dispatcher } from "../../../../src/kernel/run/dispatcher.ts";
import { RunLeases } from "../../../../src/kernel/run/leases.ts";
import { countsOf } from "../../../../src/kernel/run/report.ts";
import { type AcceptEval, TrainingEvals } from "../../../../src/kernel/run/training/evals.ts";
import { TrainingLoop } from "../../../../src/kernel/run/training/loop.ts";
import { GroupOpenings } from "../../../../src/kernel/run/training/plan.ts";
import { trainingStatusReason, trainingView } from "../../../../src/kernel/run/training/view.ts";
import { acceptRun } from "../../../../src/kernel/service/accept-run.ts";
import { inside } from "../../platform.ts";
import { TrainingByHand } from "../../training-rows.ts";

test("an eval of discarded weights is cancelled, and does not affect the step that replaces it", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, async (_, { storage }) => {
    const asked = { every: 9, num_examples: 1, rollouts_per_example: 1, at_start: false };
    const run = new TrainingByHand(storage, { eval: asked });
    const gone = { place: 0, step: 2, generation: 0, policy_version: 2, due_at: 0 };
    run.store.training.addEval(gone);
    const [entry] = run.store.training.openEvals();
    if (entry === undefined) throw new Error("no eval");
    run.store.training.setEval(entry, { run_id: "run_gone", state: "running" });
    run.tell({ generation: 1, reset_to: 1, published: 1, acked_step: 1 });
    await new TrainingEvals(env, run.store, () => 1000, acceptRun).advance(run.spec);
    expect(run.store.training.evals().map(({ state }) => state)).toEqual(["failed"]);
  });
});

test("an eval is started once, under a key of its generation and its step", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, async (_, { storage }) => {
    const asked = { every: 1, num_examples: 1, rollouts_per_example: 1, at_start: true };
    const run = new TrainingByHand(storage, { eval: asked, max_steps: 9 });
    const keys: (string | null)[] = [];
    const accept: AcceptEval = async (_env, _scope, _request, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return { ok: true, value: { run: { id: "run_eval" } } };
    };
    const evals = new TrainingEvals(env, run.store, () => 1000, accept);
    const begin = async () => {
      expect(evals.nextAt(run.spec)).toBe(1000);
      await evals.advance(run.spec);
      expect(evals.nextAt(run.spec)).toBe(3000);
    };
    await begin();
    run.tell({ acked_step: 1, published: 1 });
    await begin();
    run.tell({ generation: 1, reset_to: 0, acked_step: 0, published: 0 });
    run.tell({ acked_step: 1, published: 1 });
    await begin();
    expect(keys).toEqual(["run/eval/0/0", "run/eval/0/1", "run/eval/1/1"]);
  });
});

test("several evals are each started once at their own steps, also if the process ends right after one is accepted", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, async (_, { storage }) => {
    const asked = { every: 1, num_examples: 1, rollouts_per_example: 1, at_start: true };
    const evals = [
      { ...asked, name: "often" },
      { ...asked, name: "rarely", every: 2, at_start: false },
      { ...asked, name: "also rarely", every: 2 },
    ];
    const run = new TrainingByHand(storage, { evals, max_steps: 9 });
    const begun = new Map<string, number>();
    const names: unknown[] = [];
    // The process ends after the eval was stored, and before the run learns of it; the same key gives the same run.
    const accept: AcceptEval = async (_env, _scope, { metadata }, { idempotencyKey }) => {
      const tries = begun.get(idempotencyKey ?? "") ?? 0;
      begun.set(idempotencyKey ?? "", tries + 1);
      if (tries === 0) throw new Error("the process ends");
      names.push([metadata["eval"], metadata["step"]]);
      return { ok: true, value: { run: { id: `run_${idempotencyKey?.replaceAll("/", "")}` } } };
    };
    const beginAll = async () => {
      for (let deaths = 0; ; deaths += 1) {
        const passes = new TrainingEvals(env, run.store, () => 1000, accept);
        if (passes.nextAt(run.spec) !== 1000) return deaths;
        await passes.advance(run.spec).catch(() => run.restart());
      }
    };
    expect(await beginAll()).toBe(3);
    run.tell({ acked_step: 1, published: 1 });
    expect(await beginAll()).toBe(2);
    run.tell({ acked_step: 2, published: 2 });
    expect(await beginAll()).toBe(4);
    run.tell({ generation: 1, reset_to: 1, acked_step: 1, published: 1 });
    run.tell({ acked_step: 2, published: 2 });
    expect(await beginAll()).toBe(4);
    expect([...begun.keys()]).toEqual([
      ...["run/eval/0/0", "run/eval/0/0/2", "run/eval/0/1"],
      ...["run/eval/0/2", "run/eval/0/2/1", "run/eval/0/2/2"],
      ...["run/eval/1/2", "run/eval/1/2/1", "run/eval/1/2/2"],
    ]);
    expect([...begun.values()].every((tries) => tries === 2)).toBe(true);
    expect(names.slice(0, 3)).toEqual([
      ["often", "0"],
      ["also rarely", "0"],
      ["often", "1"],
    ]);
    const shown = trainingView(run.store, run.spec)?.evals.map(({ name, step }) => `${name} ${step}`);
    expect(shown?.slice(0, 4)).toEqual(["often 0", "also rarely 0", "often 1", "often 2"]);
  });
});

test("a run of an earlier version keeps its evals, its groups and their sizes when its tables change", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) => {
    const asked = { every: 1, num_examples: 1, rollouts_per_example: 1, at_start: true };
    const run = new TrainingByHand(storage, { eval: asked });
    run.dispatch();
    const groups = () => storage.sql.exec("select group_index, example_index, state from train_groups").toArray();
    const before = groups();
    for (const statement of [
      "drop table train_evals",
      `create table train_evals (
        step integer not null, generation integer not null, policy_version integer not null, run_id text,
        state text not null, tries integer not null default 0, due_at integer not null,
        primary key (step, generation))`,
      "create index train_evals_by_state on train_evals (state, due_at)",
      "insert into train_evals values (4, 0, 4, 'run_eval', 'running', 2, 77)",
      "drop index train_groups_by_slot",
      ...["member", "size", "slots_before"].map((column) => `alter table train_groups drop column ${column}`),
    ]) {
      storage.sql.exec(statement);
    }
    const applied = storage.kv.get<string[]>("migrations") ?? [];
    storage.kv.put(
      "migrations",
      applied.filter((name) => name !== "members" && name !== "several evals"),
    );
    run.restart();
    run.store.spec();
    const kept = {
      step: 4,
      generation: 0,
      policy_version: 4,
      run_id: "run_eval",
      state: "running",
      tries: 2,
      due_at: 77,
    };
    expect(run.store.training.evals()).toEqual([{ ...kept, place: 0 }]);
    expect(groups()).toEqual(before);
    run.settleGroups();
    expect(run.training.buffered.groups).toBe(before.length);
  });
});

test("a batch that is written and was never offered is offered at once, not at the next question to its trainer", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) => {
    const run = new TrainingByHand(storage, { max_steps: 9 });
    const loop = new TrainingLoop(env, run.store, () => 1000, { toScore: () => undefined, acceptEval: acceptRun });
    run.dispatch(4);
    run.settleGroups();
    expect(run.cut()).toBe(1);
    loop.changed(run.spec, run.news());
    expect(loop.nextAt(run.spec)).toBe(61_000);
    const batch = run.store.training.batch(1, 0);
    if (batch === null) throw new Error("a batch was cut");
    run.store.training.setBatch(batch, { state: "built" });
    expect(loop.nextAt(run.spec)).toBe(1000);
  });
});

test("a run that opens nothing because an engine serves older or discarded weights says which engine and version", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) => {
    const run = new TrainingByHand(storage, { max_off_policy_steps: 0, max_steps: 9 });
    const reason = () => trainingStatusReason(run.store, run.spec);
    const applied = (version: number) => ({
      applied: { min: version, max: version, by_replica: { "gpu-0": version } },
    });
    run.dispatch();
    run.settleGroups();
    run.cut();
    run.tell({ acked_step: 1, published: 1, serving: 0, ...applied(0) });
    expect([run.dispatch(), reason()?.state]).toEqual([0, "waiting_for_trainer"]);
    expect(reason()?.reason).toContain("version 1 is published, but gpu-0 serves version 0");
    run.tell({ serving: 1, ...applied(1) });
    expect([reason(), run.dispatch()]).toEqual([null, 4]);
  });
});

test("once its last batch is cut a run needs nothing more from its endpoint, however long its trainer takes", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) => {
    const run = new TrainingByHand(storage, { max_steps: 2, lead: 2 });
    const { store } = run;
    const leases = new RunLeases(env, store, () => 1000);
    const need = () => new Dispatcher(env, store, () => 1000, new GroupOpenings(store), leases).need(run.spec);
    expect(need().more).toBe(true);
    run.dispatch();
    run.settleGroups();
    expect(run.cut()).toBe(2);
    expect(need()).toEqual({ running: 0, wants: 0, more: false });
  });
});

test("reports of a trainer after the run's end (its last acknowledgement or a reset) do not change the result", async () => {
  const stub = env.RUN.getByName(crypto.randomUUID());
  await inside(stub, RunObject, (_, { storage }) => {
    const run = new TrainingByHand(storage, { max_steps: 9, max_off_policy_steps: 0 });
    run.dispatch();
    run.settleGroups();
    run.cut();
    run.train();
    run.dispatch(1);
    requestCancel(run.store, run.spec, "user", run.now);
    for (const row of run.rows("running")) run.answer(row, { failure: null, cancelled: "user" });
    const before = run.store.head();
    expect(before.status).toBe("cancelled");
    run.tell({ acked_step: 9 });
    expect(countsOf(run.spec, run.store.head())).toEqual(countsOf(run.spec, before));
    run.tell({ generation: 1, reset_to: 0, published: 0, acked_step: 0 });
    expect(countsOf(run.spec, run.store.head())).toEqual(countsOf(run.spec, before));
    expect(run.training.step).toBe(2);
  });
});
