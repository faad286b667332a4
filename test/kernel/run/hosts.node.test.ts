/** Which of a run's shards (objects) plays which rollout. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { Hosts } from "../../../src/kernel/run/hosts.ts";

/** `take` gives the next rollout a shard; shards are numbered from 1. */
function seats() {
  const hosts = new Hosts();
  let begun = 0;
  const take = () => hosts.take(() => ++begun);
  return { hosts, take, takeAll: (count: number) => Array.from({ length: count }, take) };
}

test("rollouts that are dispatched one after the other share an object until it is full", () => {
  expect(seats().takeAll(14)).toEqual([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3]);
});

test("a shard slot that becomes free gets the next rollout before another object is begun", () => {
  const { hosts, take, takeAll } = seats();
  takeAll(12);
  for (const host of [1, 2]) hosts.leave(host);
  expect([take(), take()].sort()).toEqual([1, 2]);
  expect(take()).toBe(3);
});

test("a group goes where most shard slots are free, so that it stays together", () => {
  const { hosts, takeAll } = seats();
  takeAll(18);
  for (const host of [1, 2, 2, 2, 2, 3]) hosts.leave(host);
  expect(takeAll(4)).toEqual([2, 2, 2, 2]);
});

test("no object gets more rollouts than it may store, however often its slots become free", () => {
  const { hosts, take } = seats();
  const given = new Map<number, number>();
  for (let rollouts = 0; rollouts < 3 * LIMITS.rolloutsPerHostInAll; rollouts += 1) {
    const host = take();
    given.set(host, (given.get(host) ?? 0) + 1);
    hosts.leave(host);
  }
  expect([...given.values()]).toEqual([1, 1, 1].map(() => LIMITS.rolloutsPerHostInAll));
});

test("an object of which a rollout was given up gets no other", () => {
  const { hosts, takeAll } = seats();
  takeAll(12);
  for (let rollouts = 0; rollouts < 6; rollouts += 1) hosts.drop(1);
  hosts.leave(2);
  expect(takeAll(2)).toEqual([2, 3]);
});

test("free slots of an object are lost if one of its rollouts is given up", () => {
  const { hosts, takeAll } = seats();
  takeAll(6);
  for (const host of [1, 1]) hosts.leave(host);
  hosts.drop(1);
  expect(takeAll(3)).toEqual([2, 2, 2]);
});

test("a rollout that takes over a trajectory has no shard slot, and after a restart leaving frees none", () => {
  const { hosts, take, takeAll } = seats();
  takeAll(6);
  hosts.leave(null);
  hosts.leave(17);
  expect(take()).toBe(2);
  hosts.forget();
  hosts.leave(1);
  expect(take()).toBe(3);
});
