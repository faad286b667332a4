/** Memory shared by the questions of all scoring groups of a process. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Place } from "../../../src/kernel/kit/places.ts";
import { ASKS_HELD, AskRoom } from "../../../src/kernel/scoring/ask-room.ts";
import { said } from "../../fixtures/judge-hearing.ts";
import { type Door, openPlatform, requestsOf } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

const HALF = LIMITS.askedCharacters / 2;

let platform: Door;
let held: Place[] = [];
beforeAll(async () => {
  platform = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const place of held) place.leave();
  held = [];
});

/** Takes this much of what the organisation may hold. */
function hold(org: string, characters: number): Place {
  const place = ASKS_HELD.take(org, Date.now(), characters);
  if (place === null) throw new Error("the room is taken");
  held.push(place);
  return place;
}

test("a scoring group whose questions have no memory calls its judges once there is some", async () => {
  const place = hold(platform.scope.orgId, HALF);
  const waits = vi.spyOn(ASKS_HELD, "wait");
  const judge = script([said("right")]);
  const run = await platform.start({
    environment: "judged-qa",
    dataset: questions(1),
    model: script(["four"]),
    judges: { default: { model: judge, endpoint: { base_url: env.MODEL_URL } } },
  });
  await vi.waitUntil(() => waits.mock.calls.length > 0, { timeout: 30_000 });
  expect(await requestsOf(judge)).toEqual([]);
  place.leave();
  expect((await platform.ended(run.id)).counts.scored).toBe(1);
  expect(await requestsOf(judge)).toHaveLength(1);
});

test("a scoring group that got no memory for too long is returned, and one that got it keeps it through its pass", async () => {
  const place = hold("org_asks", HALF);
  let now = Date.now();
  const end = now + 40_000;
  const pause = async (ms: number) => {
    now += ms;
    if (now > end) place.leave();
  };
  const room = new AskRoom("org_asks", { now: () => now, pause });
  expect(room.hold(100)).toBe("later");
  await room.enter();
  expect(room.hold(100)).toBe("full");
  await room.enter();
  expect(ASKS_HELD.take("org_asks", now, 2 * HALF)).toBeNull();
  expect(room.hold(100)).toBe("held");
  room.leave();
  hold("org_asks", 2 * HALF);
});
