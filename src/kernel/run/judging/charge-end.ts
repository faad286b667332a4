/** Hook of the accounting: adds to an ending rollout's row what its judges cost and what the platform charges. */
import type { Ending, RolloutEntry } from "../../messages/run-records.ts";
import { charges } from "../charges.ts";
import type { RunStore } from "../store.ts";
import { chargeJudges } from "./charge.ts";

/** The further columns of an ending rollout. */
export function chargeEnd(store: RunStore, row: RolloutEntry, ending: Ending): Partial<RolloutEntry> {
  const { columns, judged } = chargeJudges(store, row);
  const spec = store.spec();
  const prices = spec?.money?.prices ?? null;
  if (spec === null || prices === null) return columns;
  return { ...columns, charge: JSON.stringify(charges().chargeOf(prices, spec, row, { ...ending, judged })) };
}
