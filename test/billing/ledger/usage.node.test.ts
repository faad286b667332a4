/** Copying hours of usage to the database: only hours that changed since their last copy are copied again. */
import { expect, test } from "vitest";
import { makeLedger } from "../../../src/billing/ledger/ledger-schema.ts";
import { OTHER, Usage } from "../../../src/billing/ledger/usage.ts";
import { Rows } from "../../../src/kernel/kit/rows.ts";
import { MemoryStorage } from "./ledger-in-memory.ts";

const HOUR = 3_600_000;
const BUCKET = { project_id: "pj_a", payer: "key_a", environment: "e@1.0.0", model: "m", kind: "rollout" };

function usage(buckets?: number): Usage {
  const storage = new MemoryStorage();
  makeLedger(storage);
  return new Usage(new Rows(storage.sql), buckets);
}

const copied = (hours: Usage) => hours.toCopy(9).map(({ version, row }) => [version, row.counts, row.lines]);

test("an hour that changes while it is copied is copied again, with its whole content", () => {
  const hours = usage();
  hours.add(BUCKET, [{ rollouts: 1 }], [{ rollout: 60 }], 5);
  const first = hours.toCopy(9);
  hours.add(BUCKET, [{ rollouts: 2, turns: 3 }], [{ rollout: 1 }], 6);
  hours.noteCopied(first);
  expect(copied(hours)).toEqual([[2, { rollouts: 3, turns: 3 }, { rollout: 61 }]]);
  hours.noteCopied(hours.toCopy(9));
  expect([copied(hours), hours.waitsSince()]).toEqual([[], null]);
});

test("an hour waits from its first uncopied change, and the longest waiting are copied first", () => {
  const hours = usage();
  hours.add(BUCKET, [{ rollouts: 1 }], [], 5);
  hours.add({ ...BUCKET, model: "other" }, [{ rollouts: 1 }], [], 7);
  hours.add(BUCKET, [{ rollouts: 1 }], [], 9);
  expect([hours.waitsSince(), hours.toCopy(1).map(({ key }) => key.model)]).toEqual([5, ["m"]]);
  hours.noteCopied(hours.toCopy(1));
  hours.add(BUCKET, [{ rollouts: 1 }], [], 11);
  expect([hours.waitsSince(), hours.toCopy(1).map(({ key }) => key.model)]).toEqual([7, ["other"]]);
});

test("an hour is dropped once it is over and copied, and not before", () => {
  const hours = usage();
  hours.add(BUCKET, [{ rollouts: 1 }], [], HOUR - 1);
  hours.drop(HOUR);
  expect(copied(hours)).toHaveLength(1);
  hours.noteCopied(hours.toCopy(9));
  hours.drop(HOUR - 1);
  hours.add(BUCKET, [{ rollouts: 1 }], [], HOUR - 1);
  expect(copied(hours)).toEqual([[2, { rollouts: 2 }, {}]]);
  hours.noteCopied(hours.toCopy(9));
  hours.drop(HOUR);
  hours.add(BUCKET, [{ rollouts: 1 }], [], HOUR - 1);
  expect(copied(hours)).toEqual([[1, { rollouts: 1 }, {}]]);
});

test("beyond the maximum of buckets in an hour the rest is counted together, and the next hour starts again", () => {
  const hours = usage(2);
  for (const model of ["a", "b", "c", "d"]) hours.add({ ...BUCKET, model }, [{ rollouts: 1 }], [], 5);
  hours.add({ ...BUCKET, model: "b" }, [{ rollouts: 1 }], [], 5);
  hours.add({ ...BUCKET, model: "c" }, [{ rollouts: 1 }], [], HOUR);
  const models = hours.toCopy(9).map(({ key, row }) => [key.hour, key.model, row.counts["rollouts"]]);
  expect(models.toSorted()).toEqual([
    [0, "a", 1],
    [0, "b", 2],
    [0, OTHER, 2],
    [HOUR, "c", 1],
  ]);
});
