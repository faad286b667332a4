/** Memory for trajectories of messages that an invocation scores side by side. */
import { expect, test } from "vitest";
import { GrowingMemory, Sums } from "../../../src/kernel/kit/fair-semaphore.ts";
import { BatchMemory } from "../../../src/kernel/scoring/held-trajectories.ts";

/** An organisation that holds nothing may get twice that. */
function memoryOf(bytes: number) {
  const memory = new GrowingMemory(new Sums(2 * bytes), 60_000, 0);
  return (size: number) => () => memory.take("org", 0, size);
}

test("a message without memory waits for the others of its batch, and gets what they give back", async () => {
  const [take, batch] = [memoryOf(10), new BatchMemory()];
  const first = await batch.take(take(6));
  const second = await batch.take(take(4));
  const order: string[] = [];
  const third = batch.take(take(11)).then((memory) => {
    order.push(memory === null ? "none" : "third");
    return memory;
  });
  order.push("second leaves");
  second?.leave();
  await scheduler.wait(0);
  order.push("first leaves");
  first?.leave();
  expect(await third).not.toBeNull();
  expect(order).toEqual(["second leaves", "first leaves", "third"]);
});

test("a message gets none at once if no other of its batch has memory, and if the last one gave too little back", async () => {
  const [take, batch] = [memoryOf(10), new BatchMemory()];
  expect(await batch.take(take(21))).toBeNull();
  const only = await batch.take(take(5));
  const large = batch.take(take(21));
  only?.leave();
  expect(await large).toBeNull();
});
