/** Which of a run's shards (objects) plays which rollout. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { RunSpec } from "../../../src/kernel/messages/wire.ts";
import { NEW_HEAD } from "../../../src/kernel/run/schema.ts";
import { rolloutsPerShard, Shards } from "../../../src/kernel/run/shards.ts";

/** `take` gives the next rollout a shard; shards are numbered from 1. */
function shardSlots() {
  const shards = new Shards();
  let begun = 0;
  const take = (most = 6) => shards.take(() => ++begun, most);
  return { shards, take, takeAll: (count: number) => Array.from({ length: count }, () => take()) };
}

test("rollouts that are dispatched one after the other share an object until it is full", () => {
  expect(shardSlots().takeAll(14)).toEqual([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3]);
});

test("an object plays fewer rollouts from the moment at which the run's model is known to reply whole", () => {
  const { shards, take } = shardSlots();
  const wide = Array.from({ length: 24 }, () => take(24));
  expect(new Set(wide)).toEqual(new Set([1]));
  expect(take(6)).toBe(2);
  for (let left = 0; left < 18; left += 1) shards.leave(1);
  expect([take(6), take(6)]).toEqual([2, 2]);
  shards.leave(1);
  for (let taken = 0; taken < 3; taken += 1) take(6);
  expect(take(6)).toBe(1);
});

test("the latest report says whether a model replies whole; before the first one the run's spec does", () => {
  const widths = (["streams", "whole"] as const).map((at) => {
    const spec = { ...(at === "whole" && { replies_whole: true }) } as RunSpec;
    return [{}, { replies_whole: true }, { replies_whole: false }].map((head) => {
      return rolloutsPerShard(spec, { ...NEW_HEAD, ...head });
    });
  });
  expect(widths).toEqual([
    [24, 6, 24],
    [6, 6, 24],
  ]);
});

test("a shard slot that becomes free gets the next rollout before another object is begun", () => {
  const { shards, take, takeAll } = shardSlots();
  takeAll(12);
  for (const shard of [1, 2]) shards.leave(shard);
  expect([take(), take()].sort()).toEqual([1, 2]);
  expect(take()).toBe(3);
});

test("a group goes where most shard slots are free, so that it stays together", () => {
  const { shards, takeAll } = shardSlots();
  takeAll(18);
  for (const shard of [1, 2, 2, 2, 2, 3]) shards.leave(shard);
  expect(takeAll(4)).toEqual([2, 2, 2, 2]);
});

test("no object gets more rollouts than it may store, however often its slots become free", () => {
  const { shards, take } = shardSlots();
  const given = new Map<number, number>();
  for (let rollouts = 0; rollouts < 3 * LIMITS.rolloutsPerShardInAll; rollouts += 1) {
    const shard = take();
    given.set(shard, (given.get(shard) ?? 0) + 1);
    shards.leave(shard);
  }
  expect([...given.values()]).toEqual([1, 1, 1].map(() => LIMITS.rolloutsPerShardInAll));
});

test("an object of which a rollout was given up gets no other", () => {
  const { shards, takeAll } = shardSlots();
  takeAll(12);
  for (let rollouts = 0; rollouts < 6; rollouts += 1) shards.drop(1);
  shards.leave(2);
  expect(takeAll(2)).toEqual([2, 3]);
});

test("free slots of an object are lost if one of its rollouts is given up", () => {
  const { shards, takeAll } = shardSlots();
  takeAll(6);
  for (const shard of [1, 1]) shards.leave(shard);
  shards.drop(1);
  expect(takeAll(3)).toEqual([2, 2, 2]);
});

test("a rollout that takes over a trajectory has no shard slot, and after a restart leaving frees none", () => {
  const { shards, take, takeAll } = shardSlots();
  takeAll(6);
  shards.leave(null);
  shards.leave(17);
  expect(take()).toBe(2);
  shards.forget();
  shards.leave(1);
  expect(take()).toBe(3);
});
