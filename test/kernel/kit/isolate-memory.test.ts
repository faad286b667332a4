/** How the memory of an isolate is divided, and what a deployment without its variables gets. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { FairSemaphore } from "../../../src/kernel/kit/fair-semaphore.ts";
import { IsolateMemory } from "../../../src/kernel/kit/isolate-memory.ts";
import { memoryBudgetOf, rolloutCharactersOf } from "../../../src/kernel/kit/memory-variables.ts";

const MIB = 1024 * 1024;
const [ORGS, STEP] = [["a", "b", "c", "d", "e", "f"], 64 * 1024];

/** What large work may hold, by kind. */
function kindsOf(memory: IsolateMemory) {
  const { rollouts, replies, fetched, trajectories, questions, uploads, pages, bodies } = memory;
  return {
    ...{ rollouts: rollouts.bytes, replies: replies.bytes, fetched: fetched.bytes },
    ...{ trajectories: trajectories.bytes, questions: questions.bytes, uploads: uploads.bytes, pages, bodies },
  };
}

/** Takes all that these organisations get of one kind, in bytes. */
function takeAll(kind: FairSemaphore, orgs: readonly string[] = ORGS): number {
  let bytes = 0;
  for (const org of orgs) while (kind.take(org, 0, STEP) !== null) bytes += STEP;
  return bytes;
}

test("all kinds together never hold more than the total", () => {
  const kinds = Object.values(kindsOf(new IsolateMemory(48 * MIB)));
  const bytes = kinds.reduce((sum, kind) => sum + takeAll(kind), 0);
  // Pages that wait for their readers have the last 4 MiB.
  expect(bytes).toBeLessThanOrEqual(44 * MIB);
  expect(bytes).toBeGreaterThan(38 * MIB);
});

test.each(["pages", "uploads", "bodies"] as const)("%s take nothing from rollouts, replies and scoring", (requests) => {
  const [busy, idle] = [kindsOf(new IsolateMemory(48 * MIB)), kindsOf(new IsolateMemory(48 * MIB))];
  takeAll(busy[requests]);
  for (const kind of ["rollouts", "replies", "fetched", "trajectories", "questions"] as const) {
    expect(takeAll(busy[kind])).toBe(takeAll(idle[kind]));
  }
});

test.each([
  ["rollouts", "replies"],
  ["replies", "rollouts"],
] as const)("%s leave memory to %s", (first, second) => {
  const memory = kindsOf(new IsolateMemory(48 * MIB));
  takeAll(memory[first]);
  expect(takeAll(memory[second], ["a"])).toBeGreaterThanOrEqual(1.5 * MIB);
});

test("in a deployment two organisations have memory for a page and an upload each", () => {
  const { pages, uploads, pageMakingBytes, pageBytes } = new IsolateMemory(48 * MIB);
  expect(pageBytes).toBe(1 * MIB);
  for (const org of ["a", "b"]) {
    expect(pages.take(org, 0, pageMakingBytes)).not.toBeNull();
    expect(uploads.take(org, 0, LIMITS.datasetPartBytes)).not.toBeNull();
  }
});

test("rollouts that are scored together have as much as one scoring group may hold", () => {
  const memory = new IsolateMemory(48 * MIB);
  expect([1, 4, 16, 400].map((members) => memory.mostCharacters(members))).toEqual(
    [12, 3, 0.75, 0.5].map((mib) => mib * MIB),
  );
});

test("on one machine pages and scoring have their full sizes", () => {
  const { pageBytes, scoringCharacters } = new IsolateMemory(1024 * MIB);
  expect([pageBytes, scoringCharacters]).toEqual([LIMITS.pageBytes, LIMITS.scoringCharacters]);
});

test.each([
  [48, 48],
  ["1024", 1024],
  [undefined, 48],
  ["", 48],
  [0, 48],
  [-1, 48],
  ["a lot", 48],
  [Number.POSITIVE_INFINITY, 48],
])("with MEMORY_BUDGET_MIB %j the total is %i MiB", (MEMORY_BUDGET_MIB, mib) => {
  expect(memoryBudgetOf({ MEMORY_BUDGET_MIB })).toBe(mib * MIB);
});

test.each([
  [1_000_000, 1_000_000],
  ["4194304", 4 * MIB],
  [undefined, 4 * MIB],
  ["", 4 * MIB],
  [0, 4 * MIB],
  ["many", 4 * MIB],
  [1e12, LIMITS.rolloutCharacters],
])("with ROLLOUT_CHARACTERS %j a rollout has at most %i characters", (ROLLOUT_CHARACTERS, characters) => {
  expect(rolloutCharactersOf({ ROLLOUT_CHARACTERS })).toBe(characters);
});
