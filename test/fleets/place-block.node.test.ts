/** The places that an object holds: which call begins at which free place, and what a request contains. */
import { expect, test } from "vitest";
import { type Caller, PlaceBlock, type Taken } from "../../src/fleets/place-block.ts";
import type { BlockAsk, CallKind, GrantedBlock } from "../../src/fleets/rpc.ts";

const KIND: CallKind = {
  ...{ scope: { orgId: "o", projectId: "p" }, fleet_id: "fl_a", run_id: "run_a", model: "base", trains: true },
};
const SERVED = { model: "base", version: 1, generation: 0 };

function caller(rollout_id: string, changes: Partial<Caller> = {}): Caller {
  return { rollout_id, last_replica: null, wait_ms: 60_000, ...changes };
}

/** A block with a fleet that grants what is wanted, at the replica of the previous turn or else at `rp_1`. */
class Holder {
  readonly block = new PlaceBlock(KIND, "a");
  now = 1000;
  /** Replicas that take new calls. */
  taking: readonly string[] = ["rp_1", "rp_2"];
  full = false;
  #number = 0;

  reply(ask: BlockAsk): GrantedBlock {
    this.#number += 10;
    const from = this.#number + 1;
    return {
      ...{ kind: "block", end: this.#number, unknown: [], numbers: { from, count: 9 }, every_ms: 100, fresh_ms: 1000 },
      granted: ask.wants.map(({ last_replica }) => ({ kind: "go", replica_id: last_replica ?? "rp_1", ...SERVED })),
      again: this.taking.map((replica_id) => ({ replica_id, ...SERVED })),
      full: this.full,
    };
  }

  renew(...wanted: Caller[]): { readonly ask: BlockAsk; readonly taken: readonly Taken[] } {
    const ask = this.block.ask(wanted, this.now);
    const leases = this.block.accept(this.reply(ask), this.now);
    return { ask, taken: leases.filter((lease) => lease.kind === "go") };
  }

  end({ number }: Taken, outcome: "answered" | "failed" = "answered"): void {
    this.block.end(number, { outcome }, this.now);
  }
}

function one(taken: readonly Taken[]): Taken {
  const [first] = taken;
  if (first === undefined) throw new Error("nothing was granted");
  return first;
}

test("a rollout's next call takes its own place, and another rollout's first call takes any", () => {
  const holder = new Holder();
  const { taken } = holder.renew(caller("ro_1"), caller("ro_2", { last_replica: "rp_2" }));
  for (const call of taken) holder.end(call);
  const { block, now } = holder;
  expect(block.take(caller("ro_1", { last_replica: "rp_1" }), now)).toMatchObject({ replica_id: "rp_1", version: 1 });
  expect(block.take(caller("ro_1", { last_replica: "rp_1" }), now)).toBeNull();
  expect(block.take(caller("ro_3", { failed_replica: "rp_2" }), now)).toBeNull();
  expect(block.take(caller("ro_3"), now)).toMatchObject({ replica_id: "rp_2" });
});

test("no call begins while a request is under way, after one failed, or when the last one is no longer fresh", () => {
  const holder = new Holder();
  const { block } = holder;
  holder.end(one(holder.renew(caller("ro_1")).taken));
  const again = caller("ro_1", { last_replica: "rp_1" });
  const ask = block.ask([], holder.now);
  expect([block.isAsking, block.take(again, holder.now)]).toEqual([true, null]);
  block.accept(holder.reply(ask), holder.now);
  const sentAt = holder.now;
  expect(block.take(again, sentAt + 1000)).toBeNull();
  const taken = block.take(again, sentAt + 999);
  expect(taken).toMatchObject({ replica_id: "rp_1" });
  holder.end(one([taken].filter((lease) => lease !== null)));
  block.ask([], holder.now);
  block.fail(holder.now);
  expect(block.take(again, holder.now)).toBeNull();
  expect(holder.renew().ask.idle).toEqual([]);
});

test("a place ends with its call if the call failed, or if its replica takes no new calls", () => {
  const holder = new Holder();
  const { taken } = holder.renew(caller("ro_1"), caller("ro_2", { last_replica: "rp_2" }));
  const [first, second] = [one(taken), one(taken.slice(1))];
  holder.end(first, "failed");
  holder.taking = ["rp_1"];
  expect(holder.renew().ask).toMatchObject({ calls: [{ replica_id: "rp_2" }], idle: [] });
  holder.end(second);
  expect(holder.renew().ask).toMatchObject({ calls: [], idle: [] });
});

test("free places are given back after a second, when the fleet is full, and when their rollout is over", () => {
  const holder = new Holder();
  const { block } = holder;
  const end = (...rollouts: string[]) => {
    for (const call of holder.renew(...rollouts.map((id) => caller(id))).taken) holder.end(call);
  };
  end("ro_1", "ro_2");
  expect([block.leave("ro_1"), block.leave("ro_1")]).toEqual([true, false]);
  expect(holder.renew().ask.idle).toEqual(["rp_1"]);
  holder.now += 1000;
  expect(holder.renew().ask.idle).toEqual([]);
  holder.full = true;
  end("ro_3");
  holder.now += 100;
  expect(holder.renew().ask.idle).toEqual([]);
});

test("a full fleet gets a place back from an object that has used it for a minute, call after call", () => {
  const holder = new Holder();
  const { block } = holder;
  const again = caller("ro_1", { last_replica: "rp_1" });
  const minute = (full: boolean) => {
    Object.assign(holder, { full });
    let call = one(holder.renew(caller("ro_1")).taken);
    for (let second = 0; second < 60; second += 1) {
      holder.now += 1000;
      holder.end(call);
      holder.renew();
      const next = block.take(again, holder.now);
      if (next === null) return second;
      call = next;
    }
    holder.end(call);
    return null;
  };
  expect([minute(true), minute(false)]).toEqual([59, null]);
});

test("a call that is overdue keeps its place until it ends", () => {
  const holder = new Holder();
  holder.renew(caller("ro_1"));
  holder.now += 70_000;
  expect(holder.renew().ask.calls).toEqual([{ replica_id: "rp_1", left_ms: 1000 }]);
});

test("after three requests in a row that failed, an object without calls and ends sends no more", () => {
  const { block } = new Holder();
  const undeclared = Array.from({ length: 3 }, () => {
    block.ask([], 1000);
    block.fail(1000);
    return block.news.undeclared;
  });
  expect(undeclared).toEqual([true, true, false]);
});

test("a rollout that wants a place gives its own one back with the same request", () => {
  const holder = new Holder();
  holder.end(one(holder.renew(caller("ro_1")).taken));
  const { ask } = holder.renew(caller("ro_1", { last_replica: "rp_1" }));
  expect([ask.idle, ask.wants]).toMatchObject([[], [{ last_replica: "rp_1" }]]);
});

test("ends are reported once, again after a request that failed, and numbered by a request that was sent after them", () => {
  const holder = new Holder();
  const { block } = holder;
  const { taken } = holder.renew(caller("ro_1"), caller("ro_2"));
  const [first, second] = [one(taken), one(taken.slice(1))];
  holder.end(first);
  expect(block.ask([], holder.now).ended).toMatchObject([{ number: first.number, rollout_id: "ro_1", version: 1 }]);
  block.fail(holder.now);
  const ask = block.ask([], holder.now);
  expect(ask.ended).toMatchObject([{ number: first.number, outcome: "answered" }]);
  // It ends after the request was sent.
  holder.end(second);
  const reply = holder.reply(ask);
  block.accept(reply, holder.now);
  expect([block.takeNumber(first.number), block.takeNumber(second.number)]).toEqual([reply.end, undefined]);
  expect(holder.renew().ask.ended).toMatchObject([{ number: second.number }]);
  expect(block.takeNumber(second.number)).toBeGreaterThan(reply.end);
  expect(holder.renew().ask.ended).toEqual([]);
});

test("the end of a call of an earlier process, or one whose number was lost, gets a number of the next request", () => {
  const holder = new Holder();
  const { block } = holder;
  holder.renew();
  expect(block.takeNumber(3)).toBeUndefined();
  holder.renew();
  const number = block.takeNumber(3);
  expect(number).toBe(20);
  expect(block.takeNumber(3)).toBeUndefined();
  holder.renew();
  expect(block.takeNumber(3)).toBe(30);
});

test("a call whose reply names other weights gets no number, and neither does one on a deleted fleet", () => {
  const holder = new Holder();
  const { block } = holder;
  const { taken } = holder.renew(caller("ro_1"), caller("ro_2"));
  const [first, second] = [one(taken), one(taken.slice(1))];
  holder.end(first);
  const ask = block.ask([], holder.now);
  block.accept({ ...holder.reply(ask), unknown: [first.number] }, holder.now);
  expect(block.takeNumber(first.number)).toBeNull();
  holder.end(second);
  block.ask([caller("ro_3")], holder.now);
  expect(block.accept({ kind: "gone", reason: "deleted" }, holder.now)).toEqual([{ kind: "gone", reason: "deleted" }]);
  expect(block.takeNumber(second.number)).toBeNull();
});

test("when its numbers are used up, a call waits for a request", () => {
  const holder = new Holder();
  let call = one(holder.renew(caller("ro_1")).taken);
  const numbers = new Set([call.number]);
  for (;;) {
    holder.end(call);
    const next = holder.block.take(caller("ro_1", { last_replica: "rp_1" }), holder.now);
    if (next === null) break;
    numbers.add(next.number);
    call = next;
  }
  expect(numbers.size).toBe(9);
});
