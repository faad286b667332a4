/** The time of a call of an endpoint, while the platform has no memory for its reply. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UNLIMITED } from "../../../src/kernel/clients/outgoing.ts";
import { reachEndpoint } from "../../../src/kernel/endpoint/call.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A call of one second whose reply waits for memory. `freed`: there is some. */
function waitingCall(latestMs: number) {
  const { promise: memory, resolve: freed } = Promise.withResolvers<void>();
  const { promise: waits, resolve: begins } = Promise.withResolvers<void>();
  const controller = new AbortController();
  const grow = () => {
    begins();
    return memory;
  };
  const openReservation = () => ({ most: 1, grow, turn: () => null, leave: () => undefined });
  const open = async () => ({ base_url: "https://m.example/v1", api_key: null, send: fetch, openReservation });
  const call = reachEndpoint({ open, waitMs: 1000, latestMs, controller, connection: UNLIMITED }, async (where) => {
    await where.openReservation?.().grow(1, 1, where.signal);
    return { kind: where.signal.aborted ? "aborted" : "prompt_too_long" };
  });
  return { call, controller, waits, freed };
}

test("a call whose reply waits for memory longer than its time is not ended", async () => {
  const { call, controller, waits, freed } = waitingCall(60_000);
  await waits;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(controller.signal.aborted).toBe(false);
  freed();
  expect(await call).toEqual({ kind: "prompt_too_long" });
});

test("its latest time ends it", async () => {
  const { call, controller, waits, freed } = waitingCall(20_000);
  await waits;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(controller.signal.aborted).toBe(true);
  freed();
  expect(await call).toEqual({ kind: "aborted" });
});
