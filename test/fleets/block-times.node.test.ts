/** When a block is renewed: at once for what waits, and the less often the more objects have a block. */
import { expect, test } from "vitest";
import { type BlockNews, freshMs, renewAt, renewalMs, validMs } from "../../src/fleets/block-times.ts";
import { Blocks } from "../../src/fleets/blocks.ts";

const SENT = 1_000_000;
const NOTHING: BlockNews = {
  ...{ sentAt: SENT, every_ms: 2000, failed: false, urgent: false, wantedAt: null, endedAt: null },
  ...{ awaited: false, idleSince: null, undeclared: false, full: false },
};
const due = (news: Partial<BlockNews>) => {
  const at = renewAt({ ...NOTHING, ...news });
  return at === null ? null : at - SENT;
};

test("objects renew so rarely that a fleet gets 300 reports a second, within a tenth of a second and 5 s", () => {
  expect([1, 30, 600, 1500, 100_000].map(renewalMs)).toEqual([100, 100, 2000, 5000, 5000]);
});

test("nothing is sent while there is nothing to report", () => {
  expect(due({})).toBeNull();
});

test("the first call of an object, and a failure, are sent at once", () => {
  expect(due({ sentAt: Number.NEGATIVE_INFINITY, every_ms: 0, wantedAt: SENT })).toBe(0);
  expect(due({ urgent: true })).toBe(0);
});

test("calls that come soon after another are sent together, long before reports are due", () => {
  expect(due({ wantedAt: SENT + 500 })).toBe(600);
});

test("calls that wait in a full fleet are sent with the next report that is due", () => {
  expect(due({ wantedAt: SENT + 500, full: true })).toBe(2000);
  expect(due({ wantedAt: SENT + 2500, full: true })).toBe(2500);
});

test("ends are reported when the rollout's next call has probably begun, and sooner if its rollout is over", () => {
  expect(due({ endedAt: SENT + 1900 })).toBe(2900);
  expect(due({ endedAt: SENT + 1900, awaited: true })).toBe(2000);
});

test("free places are given back after a second, or a tenth of one while calls wait", () => {
  expect(due({ idleSince: SENT + 5000 })).toBe(6000);
  expect(due({ idleSince: SENT + 5000, full: true })).toBe(5100);
});

test("calls begin at free places for a second after a renewal, or until the next renewal is overdue", () => {
  expect([100, 2000, 5000].map(freshMs)).toEqual([1000, 3000, 7500]);
});

test("a call at a free place is declared before the fleet takes the place back", () => {
  for (const every_ms of [100, 2000, 5000]) {
    expect(due({ every_ms, undeclared: true })).toBeLessThan(validMs(every_ms));
  }
});

test("a request that failed is not repeated in less than a second, except for a call that waits", () => {
  const failed = { failed: true, every_ms: 100 };
  expect(due({ ...failed, endedAt: SENT, urgent: true, awaited: true })).toBe(1000);
  expect(due({ ...failed, wantedAt: SENT + 10 })).toBe(15);
});

test("holders count for their last 5 to 10 s", () => {
  const blocks = new Blocks();
  const put = (holder: number, now: number) =>
    blocks.put({ holder: `${holder}`, request: now, calls: [], idle: [] }, now);
  for (let holder = 0; holder < 600; holder += 1) put(holder, SENT);
  expect(blocks.everyMs).toBe(2000);
  put(0, SENT + 5000);
  expect(blocks.everyMs).toBe(2000);
  put(0, SENT + 10_000);
  expect(blocks.everyMs).toBe(100);
});

test("a holder without places is forgotten, and the number of its last request only when it sends none any more", () => {
  const blocks = new Blocks();
  const block = { holder: "a", request: 5, calls: [], idle: ["rp_1"] };
  blocks.put(block, SENT);
  blocks.put({ ...block, request: 6, idle: [] }, SENT);
  expect([blocks.of("rp_1"), blocks.isLate(block)]).toEqual([0, true]);
  for (const later of [60_000, 120_000, 180_000]) {
    blocks.put({ ...block, holder: "b" }, SENT + later);
    blocks.expire(SENT + later + 30_000);
  }
  expect([blocks.of("rp_1"), blocks.isLate(block)]).toEqual([0, false]);
});
