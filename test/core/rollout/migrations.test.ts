import { expect, test } from "vitest";
import { ROLLOUT_SCHEMA } from "../../../src/contract/trajectory.ts";
import { migrateRollout, ROLLOUT_MIGRATIONS } from "../../../src/core/rollout/migrations.ts";

test("every earlier schema has one named migration to the next", () => {
  const steps = ROLLOUT_MIGRATIONS.map(({ from }) => from);
  expect(steps).toEqual(Array.from({ length: ROLLOUT_SCHEMA - 1 }, (_, index) => index + 1));
  expect(new Set(ROLLOUT_MIGRATIONS.map(({ name }) => name)).size).toBe(steps.length);
});

test("a stored rollout takes every step from where it is, and the newest none", () => {
  const old = { schema: 1, phase: "reply" };
  const migrated = { schema: ROLLOUT_SCHEMA, phase: "reply", failed_calls: [] };
  expect(migrateRollout(old)).toEqual(migrated);
  expect(migrateRollout(migrated)).toEqual(migrated);
});

test("one that a later release stored is left alone, with what to do", () => {
  expect(() => migrateRollout({ schema: ROLLOUT_SCHEMA + 1 })).toThrow(/deploy the newer release again/);
});
