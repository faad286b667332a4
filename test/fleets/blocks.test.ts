/** Blocks of places at a fleet object with engines: what is granted, and what a kill of the holder or the fleet leaves. */
import { beforeAll, expect, test } from "vitest";
import { renewalMs, validMs } from "../../src/fleets/block-times.ts";
import type { BlockAsk, BlockReply, CallLease, GrantedBlock } from "../../src/fleets/rpc.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { DrivenFleet } from "./driven-fleet.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** Of free places, while few objects have a block. */
const VALID_MS = validMs(renewalMs(1)) + 1000;
const WANT = { last_replica: null, wait_ms: 60_000 };

function granted(reply: BlockReply): GrantedBlock {
  if (reply.kind !== "block") throw new Error(JSON.stringify(reply));
  return reply;
}

function replicasOf({ granted: all }: GrantedBlock): string[] {
  return all.map((one) => (one.kind === "go" ? one.replica_id : one.reason));
}

function at(replica_id: string, left_ms = 60_000): BlockAsk["calls"][number] {
  return { replica_id, left_ms };
}

function ended(number: number, replica_id: string, label?: string): BlockAsk["ended"][number] {
  const of = { number, replica_id, rollout_id: `ro_${number}`, model: "base", version: 1, generation: 0 };
  return { ...of, outcome: "answered", ...(label !== undefined && { label }) };
}

/** A fleet whose replicas serve version 1. Each takes two calls. */
async function trainedFleet(count: number): Promise<DrivenFleet> {
  const fleet = await new DrivenFleet(api.scope, count).open();
  await fleet.order(1);
  await fleet.fire();
  return fleet;
}

test("calls of a block go to the least loaded replicas up to their limits, whoever has the other places", async () => {
  const fleet = await trainedFleet(2);
  const [first = "", second = ""] = fleet.ids;
  const one = granted(await fleet.renew({ holder: "a", request: 1, wants: [WANT, WANT] }));
  expect(replicasOf(one).toSorted()).toEqual([first, second].toSorted());
  // A call of an object of an earlier release.
  const { replica_id } = await fleet.go();
  const other = granted(await fleet.renew({ holder: "b", request: 1, wants: [WANT, WANT] }));
  const mine = first === replica_id ? second : first;
  expect(replicasOf(other)).toEqual([mine, "every replica is at its limit of calls"]);
  expect(other.full).toBe(true);
  expect(await fleet.inFlight()).toEqual([2, 2]);
  // The other holder gives a place back, and the call asks again.
  const left = granted(await fleet.renew({ holder: "a", request: 2, calls: [at(replica_id)] }));
  expect([left.full, left.again.map((place) => place.replica_id)]).toEqual([true, [replica_id]]);
  const wants = [{ ...WANT, last_replica: mine }];
  const last = granted(await fleet.renew({ holder: "b", request: 2, calls: [at(mine)], wants }));
  expect(replicasOf(last)).toEqual([mine]);
});

test("numbers order a call after the weights before it, and its end after the call", async () => {
  const fleet = await trainedFleet(1);
  const [id = ""] = fleet.ids;
  const begun = granted(await fleet.renew({ holder: "a", request: 1, wants: [WANT] }));
  expect(begun.granted).toMatchObject([{ kind: "go", model: "base", version: 1, generation: 0 }]);
  const [number, next] = [begun.numbers.from, begun.numbers.from + 1];
  const idle = { holder: "a", request: 2, idle: [id], ended: [ended(number, id)] };
  const after = granted(await fleet.renew(idle));
  expect(after.end).toBeGreaterThanOrEqual(begun.numbers.from + begun.numbers.count);
  expect(after.again).toMatchObject([{ replica_id: id, version: 1 }]);
  const call = { replica_id: id, number, end: after.end, model: "base" };
  // The other call begins at the free place, and ends after an update that did not wait for it.
  await fleet.killAtOnce();
  await fleet.order(2);
  await fleet.fire();
  const late = granted(await fleet.renew({ holder: "a", request: 3, ended: [ended(next, id)] }));
  const across = { ...call, number: next, end: late.end };
  expect(await fleet.in((object) => object.versions(fleet.run_id, [call, across]))).toEqual([1, null]);
});

test("an update waits for the places of a block, which end with the next request or when they are not valid", async () => {
  const fleet = await trainedFleet(1);
  const [id = ""] = fleet.ids;
  granted(await fleet.renew({ holder: "a", request: 1, wants: [WANT] }));
  const kept = granted(await fleet.renew({ holder: "a", request: 2, idle: [id] }));
  expect(kept.again).toHaveLength(1);
  await fleet.order(2);
  await fleet.fire();
  expect([await fleet.states(), await fleet.inFlight()]).toEqual([["updating 1"], [1]]);
  // A call began there meanwhile.
  const held = granted(await fleet.renew({ holder: "a", request: 3, calls: [at(id)] }));
  expect(held.again).toEqual([]);
  await fleet.fire();
  expect(await fleet.states()).toEqual(["updating 1"]);
  const free = granted(
    await fleet.renew({ holder: "a", request: 4, idle: [id], wants: [{ ...WANT, last_replica: id }] }),
  );
  expect([free.again, free.granted]).toMatchObject([[], [{ kind: "wait" }]]);
  await fleet.fire();
  expect([await fleet.states(), await fleet.inFlight()]).toEqual([["ready 2"], [0]]);
});

test("places of a killed holder end: free ones soon, and those with a call when its time is over", async () => {
  const fleet = await trainedFleet(1);
  const [id = ""] = fleet.ids;
  granted(await fleet.renew({ holder: "a", request: 1, wants: [WANT] }));
  granted(await fleet.renew({ holder: "a", request: 2, calls: [at(id, 30_000)], idle: [id] }));
  expect(await fleet.inFlight()).toEqual([2]);
  await fleet.order(2);
  await fleet.fire();
  expect(await fleet.states()).toEqual(["updating 1"]);
  fleet.now += VALID_MS;
  expect(await fleet.inFlight()).toEqual([1]);
  fleet.now += 30_000;
  await fleet.fire();
  expect([await fleet.states(), await fleet.inFlight()]).toEqual([["ready 2"], [0]]);
});

test("the alarm of a fleet that drains a replica comes when free places of a killed holder end", async () => {
  const fleet = await trainedFleet(1);
  const [id = ""] = fleet.ids;
  granted(await fleet.renew({ holder: "a", request: 1, idle: [id] }));
  granted(await fleet.renew({ holder: "a", request: 2, idle: [id] }));
  await fleet.order(2);
  await fleet.fire();
  expect(await fleet.states()).toEqual(["updating 1"]);
  const alarm = await fleet.in((_, state) => state.storage.getAlarm());
  expect((alarm ?? 0) - fleet.now).toBeLessThanOrEqual(VALID_MS);
});

test("a killed fleet knows the places of a holder again with its next request", async () => {
  const fleet = await trainedFleet(2);
  const [first = "", second = ""] = fleet.ids;
  await fleet.renew({ holder: "a", request: 7, wants: [WANT, WANT] });
  await fleet.killAtOnce();
  expect(await fleet.inFlight()).toEqual([0, 0]);
  const again = granted(await fleet.renew({ holder: "a", request: 8, calls: [at(first)], idle: [second] }));
  expect(await fleet.inFlight()).toEqual([1, 1]);
  expect(again.again.map((place) => place.replica_id).toSorted()).toEqual([first, second].toSorted());
});

test("a request that arrives after a later one of its holder changes nothing", async () => {
  const fleet = await trainedFleet(1);
  const [id = ""] = fleet.ids;
  granted(await fleet.renew({ holder: "a", request: 2, calls: [at(id)] }));
  expect(await fleet.renew({ holder: "a", request: 1, wants: [WANT] })).toEqual({ kind: "late" });
  expect(await fleet.inFlight()).toEqual([1]);
});

test("failed calls of several rollouts take a replica out, and a reply that names other weights gives no version", async () => {
  const fleet = await trainedFleet(2);
  const [first = "", second = ""] = fleet.ids;
  const failed = Array.from({ length: 5 }, (_, number) => ({
    ...ended(number, first),
    outcome: "unreachable" as const,
  }));
  const without = granted(await fleet.renew({ holder: "a", request: 1, ended: failed, idle: [first], wants: [WANT] }));
  expect([without.again.map((place) => place.replica_id), replicasOf(without)]).toEqual([[second], [second]]);
  expect(await fleet.states()).toEqual(["down 1", "ready 1"]);
  const { from } = without.numbers;
  const lying = granted(await fleet.renew({ holder: "a", request: 2, ended: [ended(from, second, "7")] }));
  expect(lying.unknown).toEqual([from]);
  const { replicas } = await fleet.in((object) => object.standing(fleet.of));
  expect(replicas.find(({ replica_id }) => replica_id === second)?.reason).toBe("it reports 7 after 1 was applied");
});

test("a deleted fleet grants nothing", async () => {
  const fleet = await trainedFleet(1);
  await fleet.in((object) => object.free());
  const gone: CallLease = { kind: "gone", reason: "its fleet was deleted" };
  expect(await fleet.renew({ holder: "a", request: 1, wants: [WANT] })).toEqual(gone);
});
