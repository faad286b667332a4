import fc from "fast-check";
import { expect, test } from "vitest";
import { type Claim, fairQuotas } from "../../../src/kernel/kit/fair-quotas.ts";

function claims(wants: Readonly<Record<string, number>>): Claim[] {
  return Object.entries(wants).map(([name, wanted]) => {
    const [group = "", id = ""] = name.split("/");
    return { group, id, wants: wanted };
  });
}

function sharesOf(wants: Readonly<Record<string, number>>, limit: number): Record<string, number> {
  return Object.fromEntries(fairQuotas(claims(wants), limit));
}

test("shares are equal between organisations first, however many runs one has", () => {
  const wants = { "a/1": 90, "a/2": 90, "a/3": 90, "b/4": 90 };
  expect(sharesOf(wants, 60)).toEqual({ 1: 10, 2: 10, 3: 10, 4: 30 });
});

test("what one claimant leaves goes to those that want more, of its own organisation first", () => {
  expect(sharesOf({ "a/1": 5, "a/2": 90, "b/3": 90 }, 60)).toEqual({ 1: 5, 2: 25, 3: 30 });
  expect(sharesOf({ "a/1": 5, "b/2": 90 }, 60)).toEqual({ 1: 5, 2: 55 });
});

test("the remainder of a division goes to the oldest, in whatever order they ask", () => {
  expect(sharesOf({ "a/3": 9, "a/1": 9, "a/2": 9 }, 5)).toEqual({ 1: 2, 2: 2, 3: 1 });
  expect(sharesOf({ "b/2": 1, "a/1": 7 }, 1)).toEqual({ 1: 1, 2: 0 });
});

test("without a limit every claimant gets what it wants", () => {
  expect(sharesOf({ "a/1": 7, "b/2": 0 }, Number.POSITIVE_INFINITY)).toEqual({ 1: 7, 2: 0 });
});

test("for any claims, shares are within wants and limit, leave nothing over, and favour no claimant", () => {
  const claim = fc.record({ group: fc.constantFrom("a", "b", "c"), wants: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(claim, { maxLength: 8 }), fc.nat(60), (asked, limit) => {
      const all = asked.map((one, at) => ({ ...one, id: `run_${at}` }));
      const shares = fairQuotas(all, limit);
      const got = (some: Claim[]) => some.reduce((sum, { id }) => sum + (shares.get(id) ?? -1), 0);
      const wanted = (some: Claim[]) => some.reduce((sum, { wants }) => sum + wants, 0);
      expect(got(all)).toBe(Math.min(limit, wanted(all)));
      const orgs = [...Map.groupBy(all, ({ group }) => group).values()];
      for (const parties of [orgs, ...orgs.map((runs) => runs.map((run) => [run]))]) {
        for (const party of parties) {
          expect(got(party)).toBeLessThanOrEqual(wanted(party));
          // A claimant with less than it wants has at most one less than any other, because of the remainder.
          if (got(party) === wanted(party)) continue;
          expect(got(party) + 1).toBeGreaterThanOrEqual(Math.max(...parties.map(got)));
        }
      }
    }),
  );
});
