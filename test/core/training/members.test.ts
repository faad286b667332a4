/** The order in which members of a group of environments are taken, and which rows are theirs. */
import { expect, test } from "vitest";
import * as z from "zod";
import { seededRandom } from "../../../src/contract/random.ts";
import type { TrainedMember } from "../../../src/contract/training-request.ts";
import { dataset, EnvGroup, SingleTurnEnv } from "../../../src/core/entry.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import {
  groupSizeOf,
  largestGroup,
  memberOfRow,
  memberOrder,
  nextMember,
  rowOfMember,
  rulesOf,
  sharedMembers,
  shuffledRow,
} from "../../../src/core/training/members.ts";

/** How many groups of each member are opened, after each of `groups` groups. */
function* opened(ratios: readonly number[], seed: number, groups: number): Generator<readonly number[]> {
  const order = memberOrder(ratios.length, seed);
  let counts: readonly number[] = ratios.map(() => 0);
  for (let group = 0; group < groups; group += 1) {
    const at = nextMember(ratios, counts, order);
    counts = counts.with(at, (counts[at] ?? 0) + 1);
    yield counts;
  }
}

test("after any number of groups, each member's count differs from its share by at most 1 - 1 / (2M - 2)", () => {
  const random = seededRandom("ratios", 7);
  for (let seed = 0; seed < 40; seed += 1) {
    const members = 2 + Math.floor(random() * 8);
    const ratios = Array.from({ length: members }, () => 0.01 + random() ** 3);
    const sum = ratios.reduce((total, ratio) => total + ratio, 0);
    let worst = 0;
    let groups = 0;
    for (const counts of opened(ratios, seed, 500)) {
      groups += 1;
      for (const [at, ratio] of ratios.entries()) {
        worst = Math.max(worst, Math.abs((counts[at] ?? 0) - (groups * ratio) / sum));
      }
    }
    expect(worst).toBeLessThanOrEqual(1 - 1 / (2 * members - 2) + 1e-9);
  }
});

test("64 members, one of which has nearly all of the share, stay within one group of it", () => {
  const ratios = Array.from({ length: 64 }, (_, at) => (at === 63 ? 1_000_000 : 0.001 * (at + 1)));
  const sum = ratios.reduce((total, ratio) => total + ratio, 0);
  let groups = 0;
  for (const counts of opened(ratios, 3, 2000)) {
    groups += 1;
    const off = ratios.map((ratio, at) => Math.abs((counts[at] ?? 0) - (groups * ratio) / sum));
    expect(Math.max(...off)).toBeLessThan(1);
  }
});

test("ratios of 2 and 1 take the first member twice in every three groups, and a seed decides the order", () => {
  const taken = (seed: number) => [...opened([2, 1], seed, 9)].map(([first]) => first);
  expect(taken(1).at(-1)).toBe(6);
  expect(taken(1)).toEqual(taken(1));
  const orders = new Set(Array.from({ length: 20 }, (_, seed) => memberOrder(3, seed).join()));
  expect(orders.size).toBe(6);
});

const Row = z.object({ question: z.string() });
const environment = (rows: number | null, name: string) =>
  new SingleTurnEnv({
    dataset:
      rows === null
        ? dataset(Row, (index) => ({ question: `${name} ${index}` }))
        : dataset(Row, { length: rows, row: (index) => ({ question: `${name} ${index}` }) }),
    rubric: { rewards: { one: () => 1 } },
  });

const RUN = { name: "mean" } as const;
function membersOf(group: EnvGroup): TrainedMember[] {
  return codeOf(group).description.players.map(({ member, rows }) => {
    if (rows == null) throw new Error("it has no rows");
    return { name: member ?? "", group_size: 2, min_group_size: 2, advantage: RUN, share: { ratio: 1, rows } };
  });
}

const GROUPS = {
  "finite rows, one after the other": new EnvGroup({ a: environment(3, "a"), b: environment(4, "b") }),
  "endless rows in turn": new EnvGroup({ a: environment(null, "a"), b: environment(null, "b") }),
  "finite and endless rows in turn": new EnvGroup({ a: environment(3, "a"), b: environment(null, "b") }),
  "a group in a group": new EnvGroup({
    a: environment(3, "a"),
    inner: new EnvGroup({ c: environment(2, "c"), d: environment(5, "d") }),
  }),
  "an endless group in an endless group": new EnvGroup({
    a: environment(null, "a"),
    inner: new EnvGroup({ c: environment(null, "c"), d: environment(2, "d") }),
  }),
};

test.each(Object.entries(GROUPS))("a member's rows are those that it plays: %s", async (_, group) => {
  const code = codeOf(group);
  const shared = sharedMembers({ members: membersOf(group) }) ?? [];
  expect(shared.map(({ name }) => name)).toEqual(group.members);
  for (const { name, share } of shared) {
    for (let index = 0; index < Math.min(6, share.rows.length ?? 6); index += 1) {
      const row = rowOfMember(share.rows, index);
      const made = await code.task({ kind: "own", training: true, seed: 1, index: row });
      expect(made).toMatchObject({ member: name, row: { question: `${name.split("/").at(-1)} ${index}` } });
      expect(memberOfRow(shared, row)).toMatchObject({ member: { name }, index });
    }
  }
});

test("the rows of each member are shuffled among themselves, and each is played once", () => {
  const members = sharedMembers({ members: membersOf(GROUPS["finite rows, one after the other"]) }) ?? [];
  const rows = Array.from({ length: 7 }, (_, place) => shuffledRow(members, place, 11));
  expect(rows.slice(0, 3).toSorted()).toEqual([0, 1, 2]);
  expect(rows.slice(3).toSorted()).toEqual([3, 4, 5, 6]);
});

test("a group whose rows come with the run does not say whose they are, nor does an environment without members", () => {
  const brings = new SingleTurnEnv({ dataset: dataset(Row, "uploaded"), rubric: { rewards: { one: () => 1 } } });
  const { players } = codeOf(new EnvGroup({ a: brings, b: brings })).description;
  expect(players.map(({ rows }) => rows)).toEqual([null, null]);
  expect(codeOf(environment(3, "a")).description.players[0]).not.toHaveProperty("rows");
});

test("a member without settings has those of the run", () => {
  const own = { group_size: 4, min_group_size: 3, advantage: { name: "rloo", singleton: "zero" } } as const;
  const training = {
    ...{ advantage: RUN, length_penalty: null, min_group_size: 2, zero_variance: "drop" as const },
    members: [{ name: "a", ...own }],
  };
  const spec = { rollouts_per_example: 2, training };
  expect([groupSizeOf(spec, "a"), groupSizeOf(spec, "b"), groupSizeOf(spec, null), largestGroup(spec)]).toEqual([
    4, 2, 2, 4,
  ]);
  expect(rulesOf(training, "a")).toMatchObject({ advantage: own.advantage, min_group_size: 3 });
  expect(rulesOf(training, null)).toMatchObject({ advantage: RUN, min_group_size: 2 });
  expect([largestGroup({ rollouts_per_example: 5 }), sharedMembers(training)]).toEqual([5, null]);
});
