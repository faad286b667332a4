/** Memory shared by the questions of all scoring groups of a process. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { Reservation } from "../../../src/kernel/kit/fair-semaphore.ts";
import { AskReservation } from "../../../src/kernel/scoring/ask-reservation.ts";
import { said } from "../../fixtures/judge-hearing.ts";
import { WAIT } from "../../hang-limits.ts";
import { MEMORY } from "../memory-budget.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

const HALF = MEMORY.questions.bytes.mostOfOne;

let platform: TestApi;
let held: Reservation[] = [];
beforeAll(async () => {
  platform = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const reservation of held) reservation.leave();
  held = [];
});

/** Takes this much of what the organisation may hold. */
function hold(org: string, bytes: number): Reservation {
  const reservation = MEMORY.questions.bytes.take(org, Date.now(), bytes);
  if (reservation === null) throw new Error("the room is taken");
  held.push(reservation);
  return reservation;
}

test("a scoring group whose questions have no memory calls its judges once there is some", async () => {
  const endpoint = { base_url: env.MODEL_URL };
  const played = await platform.finish({
    environment: "judged-qa",
    dataset: questions(1),
    model: script(["four"]),
    judges: { default: { model: script([said("right")]), endpoint } },
  });
  const reservation = hold(platform.scope.orgId, HALF);
  const waits = vi.spyOn(MEMORY.questions, "wait");
  const judge = script([said("right")]);
  const judges = { default: { model: judge, endpoint } };
  const reply = await platform.post(`/v1/runs/${played.id}/rescore`, { judges });
  expect(reply.status).toBe(202);
  const run = await reply.json<{ id: string }>();
  await vi.waitUntil(() => waits.mock.calls.length > 0, WAIT);
  expect(await requestsOf(judge)).toEqual([]);
  reservation.leave();
  expect((await platform.ended(run.id)).counts.scored).toBe(1);
  expect(await requestsOf(judge)).toHaveLength(1);
});

test("a scoring group that got no memory for too long is returned, and one that got it keeps it through its pass", async () => {
  const reservation = hold("org_asks", HALF);
  let now = Date.now();
  const end = now + 40_000;
  const pause = async (ms: number) => {
    now += ms;
    if (now > end) reservation.leave();
  };
  const room = new AskReservation(env, "org_asks", { now: () => now, pause });
  expect(room.hold(100)).toBe("later");
  await room.enter();
  expect(room.hold(100)).toBe("full");
  await room.enter();
  expect(MEMORY.questions.bytes.take("org_asks", now, 2 * HALF)).toBeNull();
  expect(room.hold(100)).toBe("held");
  room.leave();
  hold("org_asks", 2 * HALF);
});
