/** Which thresholds of a budget are recorded as it is spent, and how long notices are kept. */
import { expect, test } from "vitest";
import { type Budget, Spending } from "../../../src/billing/ledger/budgets.ts";
import { makeLedger } from "../../../src/billing/ledger/ledger-schema.ts";
import { Rows } from "../../../src/kernel/kit/rows.ts";
import { MemoryStorage } from "./ledger-in-memory.ts";

const PAYER = { project_id: "pj_a", payer: "key_a" };
const BUDGET: Budget = { id: "bg_a", target_kind: "organization", target_id: "org_a", limit_micros: 1000 };

function spending(): Spending {
  const storage = new MemoryStorage();
  makeLedger(storage);
  return new Spending(new Rows(storage.sql));
}

/** The thresholds that are crossed once this much is spent. */
function crossedAt(micros: number, budget: Budget = BUDGET): readonly number[] {
  const ledger = spending();
  ledger.add("2026-11", PAYER, micros);
  ledger.watch("2026-11", [budget], PAYER, 5);
  return ledger.crossed("2026-11").get(budget.id) ?? [];
}

test("a threshold is crossed by the micro-dollar that reaches it, and not by the one before", () => {
  expect([499, 500, 799, 800, 999, 1000].map((micros) => crossedAt(micros))).toEqual([
    [],
    [50],
    [50],
    [50, 80],
    [50, 80],
    [50, 80, 100],
  ]);
  expect(crossedAt(0, { ...BUDGET, limit_micros: 0 })).toEqual([]);
  expect(crossedAt(1, { ...BUDGET, limit_micros: 0 })).toEqual([50, 80, 100]);
});

test("a budget is checked if it applies to the charged organisation, project and key", () => {
  const of = (target_kind: Budget["target_kind"], target_id: string) =>
    crossedAt(1000, { ...BUDGET, target_kind, target_id }).length;
  expect([of("project", "pj_a"), of("key", "key_a")]).toEqual([3, 3]);
  expect([of("project", "pj_b"), of("key", "key_b")]).toEqual([0, 0]);
});

test("an undelivered notice is kept after its month, and deleted with the next once it is delivered", () => {
  const ledger = spending();
  ledger.add("2026-11", PAYER, 800);
  ledger.watch("2026-11", [BUDGET], PAYER, 5);
  const [first, second] = ledger.toDeliver(9);
  if (first === undefined || second === undefined) throw new Error("two thresholds are crossed");
  ledger.noteDelivered(first, 6);
  ledger.drop("2026-12");
  expect(ledger.toDeliver(9)).toEqual([second]);
  expect([ledger.crossed("2026-11").get(BUDGET.id), ledger.of("2026-11", "organization")]).toEqual([[80], 0]);
  ledger.noteDelivered(second, 7);
  ledger.drop("2026-12");
  expect(ledger.crossed("2026-11").size).toBe(0);
});

test("a notice is tried eight times", () => {
  const ledger = spending();
  ledger.add("2026-11", PAYER, 500);
  ledger.watch("2026-11", [BUDGET], PAYER, 5);
  const [notice] = ledger.toDeliver(1);
  if (notice === undefined) throw new Error("a threshold is crossed");
  const goesOn = Array.from({ length: 8 }, () => ledger.noteFailed(notice));
  expect(goesOn).toEqual([true, true, true, true, true, true, true, false]);
});
