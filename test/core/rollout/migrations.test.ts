import { expect, test } from "vitest";
import { ROLLOUT_SCHEMA } from "../../../src/contract/trajectory.ts";
import { migrateRollout, ROLLOUT_MIGRATIONS } from "../../../src/core/rollout/migrations.ts";

test("every earlier schema has one named migration to the next", () => {
  const steps = ROLLOUT_MIGRATIONS.map(({ from }) => from);
  expect(steps).toEqual(Array.from({ length: ROLLOUT_SCHEMA - 1 }, (_, index) => index + 1));
  expect(new Set(ROLLOUT_MIGRATIONS.map(({ name }) => name)).size).toBe(steps.length);
});

test("a stored rollout takes every step from its schema on, and one of the newest schema takes none", () => {
  const adding = (from: number, field: string) => ({
    name: `${field} is kept`,
    from,
    change: <Stored extends object>(stored: Stored) => ({ schema: from, ...stored, [field]: [] }),
  });
  const [schema, steps] = [ROLLOUT_SCHEMA + 2, [...ROLLOUT_MIGRATIONS]];
  steps.push(adding(schema - 2, "one"), adding(schema - 1, "two"));
  const of = (stored: { readonly schema: number }) => migrateRollout(stored, { schema, steps });
  expect(of({ schema: schema - 2 })).toEqual({ schema, one: [], two: [] });
  expect(of({ schema: schema - 1 })).toEqual({ schema, two: [] });
  expect(of({ schema })).toEqual({ schema });
});

test("a rollout stored by a later release is refused, with what to do", () => {
  expect(() => migrateRollout({ schema: ROLLOUT_SCHEMA + 1 })).toThrow(/deploy the newer release again/);
});
