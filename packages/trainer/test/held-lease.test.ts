import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { holdLease } from "../batches.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The heartbeats of a lease of 30 s, one of which fails. */
function held() {
  const beats: string[] = [];
  const said: string[] = [];
  const client = {
    heartbeat: async (id: string) => {
      beats.push(id);
      if (beats.length === 2) throw new Error("not now");
      return { expires_at: 60 };
    },
  };
  const lease = { id: "ls_1", token: "x", expires_at: 30, attempt: 1 };
  return { beats, said, held: holdLease(client, lease, 1, 0, (line) => said.push(line)) };
}

test("a lease gets three heartbeats in its time until it ends, even if one fails", async () => {
  const { beats, said, held: lease } = held();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(beats).toEqual(["ls_1", "ls_1", "ls_1"]);
  expect(said).toEqual(["no heartbeat: Error: not now"]);
  lease.end();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(beats).toHaveLength(3);
});
