/** How the memory of an isolate is divided, and what a deployment without its variables gets. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { FairSemaphore } from "../../../src/kernel/kit/fair-semaphore.ts";
import { BYTES_PER_CHARACTER, IsolateMemory } from "../../../src/kernel/kit/isolate-memory.ts";
import { memoryBudgetOf, rolloutCharactersOf } from "../../../src/kernel/kit/memory-variables.ts";

const MIB = 1024 * 1024;
const [ORGS, STEP] = [["a", "b", "c", "d", "e", "f"], 64 * 1024];

/** Takes all that these organisations get of one kind, in bytes. */
function takeAll(kind: FairSemaphore, orgs: readonly string[] = ORGS): number {
  let bytes = 0;
  for (const org of orgs) while (kind.take(org, 0, STEP) !== null) bytes += STEP;
  return bytes;
}

test("all kinds together never hold more than the total", () => {
  const memory = new IsolateMemory(48 * MIB);
  const { rollouts, replies, trajectories, questions, bodies, uploads, pages } = memory;
  const kinds = [rollouts, replies, trajectories, questions, bodies, uploads, pages];
  const bytes = kinds.reduce((sum, kind) => sum + takeAll(kind), 0);
  expect(bytes).toBeLessThanOrEqual(48 * MIB);
  expect(bytes).toBeGreaterThan(40 * MIB);
});

test.each(["pages", "uploads", "bodies"] as const)("%s take nothing from rollouts, replies and scoring", (requests) => {
  const [busy, idle] = [new IsolateMemory(48 * MIB), new IsolateMemory(48 * MIB)];
  takeAll(busy[requests]);
  for (const kind of ["rollouts", "replies", "trajectories", "questions"] as const) {
    expect(takeAll(busy[kind])).toBe(takeAll(idle[kind]));
  }
});

test.each([
  ["rollouts", "replies"],
  ["replies", "rollouts"],
] as const)("%s leave at least a twelfth of the total to %s", (first, second) => {
  const memory = new IsolateMemory(48 * MIB);
  takeAll(memory[first], ["a"]);
  expect(takeAll(memory[second], ["a"])).toBeGreaterThanOrEqual(2 * MIB);
  takeAll(memory[first], ORGS);
  expect(memory[first].held).toBeLessThanOrEqual(16 * MIB);
});

test("in a deployment one organisation has room for the largest rollout, and two for a page and an upload each", () => {
  const { rollouts, pages, uploads, pageMakingBytes } = new IsolateMemory(48 * MIB);
  expect(rollouts.mostOfOne).toBe(4 * MIB * BYTES_PER_CHARACTER);
  for (const org of ["a", "b"]) {
    expect(pages.take(org, 0, pageMakingBytes)).not.toBeNull();
    expect(uploads.take(org, 0, LIMITS.datasetPartBytes)).not.toBeNull();
  }
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
