/** A call on a fleet whose object is scripted: what the object receives, and the outcome of the call. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { newRollout, type Rollout } from "../../src/core/rollout/rollout.ts";
import { fleetReach } from "../../src/fleets/reach.ts";
import type { CallLease, EndedCall, FleetCall } from "../../src/fleets/rpc.ts";
import { fleets, replicas } from "../../src/fleets/tables.ts";
import { UNLIMITED } from "../../src/kernel/clients/outgoing.ts";
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
  const project = inProject(env.DB, api.scope);
  await project.batch([project.insert(fleets, fleet), project.insert(replicas, up), project.insert(replicas, away)]);
});

const go = ({ id }: Pick<BareReplica, "id">): CallLease => {
  return { kind: "go", number: 7, replica_id: id, model: "adapter@3", version: 3, generation: 1 };
};

/** Makes one call with the fleet's answer `permit`. */
async function called(lease: CallLease, model: string, from: Partial<Rollout> = {}, ended = true) {
  const said: { begun: FleetCall[]; ended: EndedCall[] } = { begun: [], ended: [] };
  const object = {
    begin: async (call: FleetCall) => {
      said.begun.push(call);
      return lease;
    },
    ended: async (call: EndedCall) => {
      said.ended.push(call);
      if (!ended) throw new Error("gone");
      return { end: 9 };
    },
  };
  const FLEET: unknown = { getByName: () => object };
  const { scope } = api;
  const about = { run_id: "run_1", rollout_id: "ro_1", policy_version: 2, fleet: { id: fleet.id } };
  const spec = { scope, endpoint_id: fleet.id, model: "base", ...about } as RolloutSpec;
  const calls = new Subrequests();
  const task = { id: "ro_1", task_key: "k", example_id: 0, task: {}, prompt: [], answer: "", info: {} };
  const outcome = await fleetReach({ ...env, FLEET } as Env, spec, calls, () => Date.now())({
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
  return { outcome, ...said };
}

test("an answer has the replica and model that the fleet chose, and the number of its end", async () => {
  const { outcome, begun, ended } = await called(go(up), script(RIGHT));
  expect(outcome).toMatchObject({
    kind: "answered",
    fleet_call: { replica_id: up.id, number: 7, end: 9, model: "adapter@3", version: 3 },
  });
  expect(begun).toMatchObject([{ run_id: "run_1", turn: 0, model: "base", trains: true, last_replica: null }]);
  expect(ended).toEqual([{ number: 7, replica_id: up.id, outcome: "answered" }]);
});

test("if the end cannot be reported to the fleet, the answer stays and has no end number", async () => {
  const { outcome } = await called(go(up), script(RIGHT), {}, false);
  expect(outcome).toMatchObject({ kind: "answered", fleet_call: { end: null } });
});

test("a call that no replica takes was not sent, and a call on a deleted fleet fails", async () => {
  const waits = await called({ kind: "wait", again_at: 5, reason: "updating" }, "m");
  expect(waits).toMatchObject({ outcome: { kind: "held", again_at: 5 }, ended: [] });
  const gone = await called({ kind: "gone", reason: "it was deleted" }, "m");
  expect(gone).toMatchObject({ outcome: { kind: "unusable" }, ended: [] });
});

test("a fault of one replica is retried, and the next call names that replica", async () => {
  const broken = await called(go(away), "m");
  expect(broken.outcome).toMatchObject({ kind: "failed", retryable: true, replica: away.id });
  expect(broken.ended).toMatchObject([{ outcome: "unreachable" }]);
  const missing = await called(go(up), script([{ fault: { kind: "status", status: 404 } }]));
  expect(missing.outcome).toMatchObject({ kind: "failed", retryable: true, status: 404 });
  expect(missing.ended).toMatchObject([{ outcome: "unknown_model" }]);
  const locked = await called(go(up), script([{ fault: { kind: "status", status: 401 } }]));
  // Another replica has another key, so this does not end the run.
  expect(locked.outcome).toMatchObject({ kind: "failed", retryable: true, error: { error: "ModelError" } });
  expect(locked.ended).toMatchObject([{ outcome: "failed" }]);
  const removed = await called(go({ id: "rp_removed" }), "m");
  expect(removed.outcome).toMatchObject({ kind: "failed", retryable: true, replica: "rp_removed" });
  const failed = {
    turn: 0,
    call: 1,
    at: 0,
    failure: "provider",
    error: "ModelError",
    message: "",
    replica: away.id,
  } as const;
  const again = await called(go(up), script(RIGHT), { failed_calls: [failed] });
  expect(again.begun).toMatchObject([{ failed_replica: away.id }]);
});
