/** A call on a fleet whose object is scripted: what the object receives, and the outcome of the call. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { Turn } from "../../src/contract/trajectory.ts";
import { noteEnds, withEnds } from "../../src/core/rollout/call-ends.ts";
import { newRollout, type Rollout } from "../../src/core/rollout/rollout.ts";
import { fleetEnds, fleetReach } from "../../src/fleets/reach.ts";
import type { BlockAsk, BlockReply, CallLease, EndedCall, FleetCall, GrantedBlock } from "../../src/fleets/rpc.ts";
import { fleets, replicas } from "../../src/fleets/tables.ts";
import { UNLIMITED } from "../../src/kernel/clients/outgoing.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { inProject } from "../../src/kernel/db/scoped.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import type { RolloutSpec } from "../../src/kernel/messages/wire.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";
import { type BareReplica, fleetRow, replicaRow } from "./rows.ts";

let api: TestApi;
const fleet = fleetRow({ name: "called" });
const [up, away] = [replicaRow(fleet.id), replicaRow(fleet.id, { name: "gpu-1", base_url: "http://127.0.0.1:9/v1" })];

beforeAll(async () => {
  api = await openPlatform();
  const project = inProject(databaseOf(env), api.scope);
  await project.batch([project.insert(fleets, fleet), project.insert(replicas, up), project.insert(replicas, away)]);
});

type Granted = GrantedBlock["granted"][number] | Extract<CallLease, { kind: "gone" }>;

const go = ({ id }: Pick<BareReplica, "id">): Granted => {
  return { kind: "go", replica_id: id, model: "adapter@3", version: 3, generation: 1 };
};

/** A fleet's object that grants each call the same. Its numbers of ends are 9, 19, … */
class ScriptedFleet {
  readonly asks: BlockAsk[] = [];
  /** Requests from this one on fail. */
  failsFrom = Number.POSITIVE_INFINITY;
  readonly #granted: Granted;

  constructor(granted: Granted) {
    this.#granted = granted;
  }

  async renew(ask: BlockAsk): Promise<BlockReply> {
    this.asks.push(ask);
    if (this.asks.length >= this.failsFrom) throw new Error("gone");
    const granted = this.#granted;
    if (granted.kind === "gone") return granted;
    const { kind: _, ...place } = { replica_id: "", model: "", version: null, ...granted };
    const end = 10 * this.asks.length - 1;
    return {
      ...{ kind: "block", end, unknown: [], numbers: { from: end + 1, count: 8 }, again: [place] },
      ...{ granted: ask.wants.map(() => granted), every_ms: 1, fresh_ms: 60_000, full: false },
    };
  }

  get reported() {
    return this.asks.flatMap((ask) => ask.ended);
  }

  get wants() {
    return this.asks.flatMap((ask) => ask.wants);
  }
}

/** A rollout that makes its calls to a scripted fleet. */
class Caller {
  readonly fleet: ScriptedFleet;
  readonly #env: Env;
  readonly #spec: RolloutSpec;
  /** Those of the object that plays the rollout. */
  calls = new Subrequests();

  constructor(granted: Granted, trains = true) {
    this.fleet = new ScriptedFleet(granted);
    const FLEET: unknown = { getByName: () => this.fleet };
    this.#env = { ...env, FLEET } as Env;
    const about = {
      run_id: "run_1",
      rollout_id: "ro_1",
      ...(trains && { policy_version: 2 }),
      fleet: { id: fleet.id },
    };
    this.#spec = { scope: api.scope, endpoint_id: fleet.id, model: "base", ...about } as RolloutSpec;
  }

  async call(model: string, from: Partial<Rollout> = {}) {
    const task = { id: "ro_1", task_key: "k", example_id: 0, task: {}, prompt: [], answer: "", info: {} };
    return await fleetReach(this.#env, this.#spec, this.calls, () => Date.now())({
      from: { ...newRollout(task, 0), ...from },
      waitMs: 5000,
      controller: new AbortController(),
      connection: UNLIMITED,
      call: (by) => ({
        model: by?.model === "adapter@3" ? model : "?",
        messages: [{ role: "user", content: "2 + 2" }],
        ...{ tools: [], sampling: {}, idempotency_key: "ro_1:0" },
      }),
    });
  }

  ends(turns: readonly object[]) {
    return fleetEnds(this.#env, this.#spec, turns as readonly Turn[], this.calls, () => Date.now());
  }
}

function turnOf(outcome: Awaited<ReturnType<Caller["call"]>>): Turn {
  if (outcome.kind !== "answered") throw new Error(JSON.stringify(outcome));
  return { fleet_call: outcome.fleet_call } as Turn;
}

test("an answer has the replica and model that the fleet chose, and its end is numbered when its rollout is over", async () => {
  const caller = new Caller(go(up));
  const answered = await caller.call(script(RIGHT));
  const fleet_call = { replica_id: up.id, number: 10, end: null, model: "adapter@3", version: 3, open: true };
  expect(answered).toMatchObject({ kind: "answered", fleet_call });
  expect(caller.fleet.asks).toMatchObject([
    { run_id: "run_1", model: "base", trains: true, wants: [{ last_replica: null }], ended: [] },
  ]);
  const turns = [turnOf(answered)];
  const ends = await caller.ends(turns);
  expect(ends).toEqual([{ turn: 0, end: 19 }]);
  expect(withEnds(noteEnds(turns, ends))).toMatchObject([{ fleet_call: { number: 10, end: 19 } }]);
  expect(caller.fleet.reported).toMatchObject([{ number: 10, replica_id: up.id, outcome: "answered" }]);
  // The rollout gave its place back.
  expect(caller.fleet.asks.at(-1)).toMatchObject({ calls: [], idle: [] });
});

test("the next call of a rollout begins at its place without a request, and a later turn notes the end before", async () => {
  const caller = new Caller(go(up));
  const turns = [turnOf(await caller.call(script(RIGHT)))];
  const again = script([RIGHT, RIGHT, RIGHT, RIGHT].flat());
  while (turns.at(-1)?.fleet_call?.ends === undefined) {
    turns.push(turnOf(await caller.call(again, { turns })));
    // Nothing but the first call waited for a place.
    expect(caller.fleet.wants).toHaveLength(1);
  }
  const [first] = turns.at(-1)?.fleet_call?.ends ?? [];
  expect(first).toMatchObject({ turn: 0 });
  expect(first?.end).toBeGreaterThan(turns[0]?.fleet_call?.number ?? 0);
});

test("after a kill of the object that plays the rollout, ends without a number get a later one", async () => {
  const caller = new Caller(go(up));
  const turns = [turnOf(await caller.call(script(RIGHT)))];
  caller.calls = new Subrequests();
  const [end] = await caller.ends(turns);
  expect(end).toMatchObject({ turn: 0, end: 10 * caller.fleet.asks.length - 1 });
  expect(new Set(caller.fleet.asks.map(({ holder }) => holder)).size).toBe(2);
});

test("a fleet's object of the release before, which has no blocks, gets two requests for each call", async () => {
  const caller = new Caller(go(up));
  const asked: object[] = [];
  Object.assign(caller.fleet, {
    renew: async () => {
      throw new TypeError('The RPC receiver does not implement the method "renew".');
    },
    begin: async (call: FleetCall) => {
      asked.push(call);
      return { ...go(up), number: 3 };
    },
    ended: async (ended: EndedCall) => {
      asked.push(ended);
      return { end: 4 };
    },
  });
  const answered = await caller.call(script(RIGHT));
  const fleet_call = { replica_id: up.id, number: 3, end: 4, model: "adapter@3", version: 3 };
  expect(answered).toMatchObject({ kind: "answered", fleet_call });
  expect(asked).toMatchObject([
    { run_id: "run_1", turn: 0, model: "base", trains: true, last_replica: null },
    { number: 3, replica_id: up.id, outcome: "answered" },
  ]);
  expect(await caller.ends([turnOf(answered)])).toEqual([]);
});

test("if the end cannot be reported to the fleet, the answer stays and has no end number", async () => {
  const caller = new Caller(go(up));
  const outcome = await caller.call(script(RIGHT));
  caller.fleet.failsFrom = 2;
  const turns = [turnOf(outcome)];
  expect(withEnds(noteEnds(turns, await caller.ends(turns)))).toMatchObject([{ fleet_call: { end: null } }]);
  caller.fleet.failsFrom = Number.POSITIVE_INFINITY;
});

test("calls of an eval need no number for their end", async () => {
  const caller = new Caller(go(up), false);
  const turns = [turnOf(await caller.call(script(RIGHT)))];
  expect(turns).toMatchObject([{ fleet_call: { number: 10, end: null } }]);
  expect(turns[0]?.fleet_call).not.toHaveProperty("open");
  expect(await caller.ends(turns)).toEqual([]);
  expect(caller.fleet.reported).toMatchObject([{ number: 10 }]);
});

test("a call that no replica takes was not sent, and a call on a deleted fleet fails", async () => {
  const waits = new Caller({ kind: "wait", again_at: 5, reason: "updating" });
  expect(await waits.call("m")).toMatchObject({ kind: "held", again_at: 5 });
  const gone = new Caller({ kind: "gone", reason: "it was deleted" });
  expect(await gone.call("m")).toMatchObject({ kind: "unusable" });
  expect([waits.fleet.reported, gone.fleet.reported]).toEqual([[], []]);
});

test("a fault of one replica is retried, and the next call names that replica", async () => {
  const broken = new Caller(go(away));
  expect(await broken.call("m")).toMatchObject({ kind: "failed", retryable: true, replica: away.id });
  // The fleet has the failure before the retry, and the place is not used again.
  expect(broken.fleet.asks.at(-1)).toMatchObject({ ended: [{ outcome: "unreachable" }], idle: [] });
  const missing = new Caller(go(up));
  const unknown = await missing.call(script([{ fault: { kind: "status", status: 404 } }]));
  expect(unknown).toMatchObject({ kind: "failed", retryable: true, status: 404 });
  expect(missing.fleet.reported).toMatchObject([{ outcome: "unknown_model" }]);
  const locked = new Caller(go(up));
  const refused = await locked.call(script([{ fault: { kind: "status", status: 401 } }]));
  // Another replica has another key, so this does not end the run.
  expect(refused).toMatchObject({ kind: "failed", retryable: true, error: { error: "ModelError" } });
  expect(locked.fleet.reported).toMatchObject([{ outcome: "failed" }]);
  const removed = await new Caller(go({ id: "rp_removed" })).call("m");
  expect(removed).toMatchObject({ kind: "failed", retryable: true, replica: "rp_removed" });
  const failed = {
    turn: 0,
    call: 1,
    at: 0,
    failure: "provider",
    error: "ModelError",
    message: "",
    replica: away.id,
  } as const;
  const again = new Caller(go(up));
  await again.call(script(RIGHT), { failed_calls: [failed] });
  expect(again.fleet.wants).toMatchObject([{ failed_replica: away.id }]);
});
