/** When an object sends its requests to a fleet, and who waits for the reply. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HeldBlock } from "../../src/fleets/held-block.ts";
import type { BlockAsk, BlockReply, CallKind } from "../../src/fleets/rpc.ts";

const KIND: CallKind = {
  ...{ scope: { orgId: "o", projectId: "p" }, fleet_id: "fl_a", run_id: "run_a", model: "base", trains: true },
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A block whose fleet grants each wanted place. `lost`: the requests, from 1, whose reply is lost. */
function held(...lost: number[]) {
  const asks: BlockAsk[] = [];
  const noted: unknown[] = [];
  const send = async (ask: BlockAsk): Promise<BlockReply> => {
    asks.push(ask);
    if (lost.includes(asks.length)) throw new Error("the reply is lost");
    const [served, end] = [{ replica_id: "rp_1", model: "base", version: 1, generation: 0 }, 100 * asks.length];
    const block = { kind: "block", end, unknown: [], numbers: { from: end + 1, count: 9 }, full: false } as const;
    const granted = ask.wants.map(() => ({ kind: "go", ...served }) as const);
    return { ...block, granted, again: [served], every_ms: 100, fresh_ms: 1000 };
  };
  const block = new HeldBlock({ kind: KIND, send, now: () => Date.now(), noteFailure: (thrown) => noted.push(thrown) });
  const take = async (): Promise<number> => {
    const taken = block.take({ rollout_id: "ro_1", last_replica: null, wait_ms: 60_000 });
    await vi.runAllTimersAsync();
    const lease = await taken;
    if (lease.kind !== "go") throw new Error(lease.kind);
    return lease.number;
  };
  const settle = async (number: number) => {
    const settled = block.settle("ro_1", [number]);
    await vi.runAllTimersAsync();
    return await settled;
  };
  return { block, asks, noted, take, settle };
}

const ANSWERED = { outcome: "answered", urgent: false } as const;

test("the end of a rollout's last call gets its number from the next request, even if one failed before it", async () => {
  const { block, asks, noted, take, settle } = held(2);
  const number = await take();
  await block.end(number, ANSWERED);
  expect(await settle(number)).toEqual([300]);
  expect([asks.length, noted.length]).toEqual([3, 1]);
  expect(asks[2]).toMatchObject({ ended: [{ number }], idle: [], calls: [] });
});

test("if two requests fail, a call's end has no number", async () => {
  const { block, take, settle } = held(2, 3);
  const number = await take();
  await block.end(number, ANSWERED);
  expect(await settle(number)).toEqual([null]);
});
