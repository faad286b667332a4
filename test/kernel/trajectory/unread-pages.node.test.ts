/** Pages that wait for their readers. */
import { expect, test } from "vitest";
import { type UnreadPage, UnreadPages } from "../../../src/kernel/kit/fair-semaphore.ts";

const page = (...lengths: number[]) => lengths.map((length) => new Uint8Array(length));

function rest(held: UnreadPage | null | undefined): number[] {
  const lengths: number[] = [];
  for (let piece = held?.next(); piece; piece = held?.next()) lengths.push(piece.length);
  return lengths;
}

test("a page is read piece by piece, and what is read frees memory", () => {
  const pages = new UnreadPages(100, 1000);
  const first = pages.hold("a", page(60, 30), 0);
  expect(pages.hold("b", page(50), 10)).toBeNull();
  expect(first?.next()).toHaveLength(60);
  const second = pages.hold("b", page(50), 10);
  expect([rest(first), rest(second)]).toEqual([[30], [50]]);
  expect(rest(pages.hold("a", page(100), 10))).toEqual([100]);
});

test("without free memory the pages that waited longest are dropped, as many as needed, and none before its time", () => {
  const pages = new UnreadPages(100, 1000);
  const [old, older, young] = ["a", "b", "c"].map((org, at) => {
    return pages.hold(org, page(at === 2 ? 20 : 40), at * 10);
  });
  expect(pages.hold("d", page(30), 999)).toBeNull();
  expect(pages.hold("d", page(30), 1000)).not.toBeNull();
  expect(() => old?.next()).toThrow("request it again");
  old?.drop();
  expect(() => old?.next()).toThrow("request it again");
  expect(rest(older)).toEqual([40]);
  expect(rest(young)).toEqual([20]);
});

test("a page that is read to its last piece is not cut, whatever is added then", () => {
  const pages = new UnreadPages(100, 1000);
  const held = pages.hold("a", page(90), 0);
  expect(held?.next()).toHaveLength(90);
  expect(pages.hold("b", page(100), 5000)).not.toBeNull();
  expect(held?.next()).toBeNull();
});

test("a page larger than all the memory is held alone", () => {
  const pages = new UnreadPages(100, 1000);
  const small = pages.hold("a", page(1), 0);
  expect(pages.hold("b", page(500), 10)).toBeNull();
  small?.drop();
  expect(pages.hold("b", page(500), 20)).not.toBeNull();
  expect(pages.hold("a", page(1), 30)).toBeNull();
});

test("a page that waits for memory gets it when another one has waited too long", async () => {
  const pages = new UnreadPages(100, 1000);
  pages.hold("a", page(100), 0);
  let now = 0;
  const pause = async (ms: number) => {
    now += ms;
  };
  expect(await pages.wait("b", page(50), 500, { now: () => now, pause })).toBeNull();
  expect(await pages.wait("b", page(50), 600, { now: () => now, pause })).not.toBeNull();
  expect(now).toBe(1000);
});

test("if one organisation reads nothing, its own pages are dropped and not those of others", () => {
  const pages = new UnreadPages(100, 1000);
  const theirs = pages.hold("fair", page(10), 0);
  const greedy = pages.hold("greedy", page(40), 10);
  expect(pages.hold("greedy", page(40), 20)).toBeNull();
  expect(pages.hold("other", page(40), 20)).not.toBeNull();
  expect(pages.hold("greedy", page(40), 1010)).not.toBeNull();
  expect(() => greedy?.next()).toThrow("request it again");
  expect(rest(theirs)).toEqual([10]);
});
