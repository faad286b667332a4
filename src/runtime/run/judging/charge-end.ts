/** What stands on the row of a rollout as it ends: what its judges cost, and what the platform charges it (../charging.ts). */
import { chargeOf } from "../../../core/billing/charge.ts";
import type { Ending, RolloutEntry } from "../../contract/run-records.ts";
import { endOf } from "../charging.ts";
import type { RunStore } from "../store.ts";
import { chargeJudges } from "./charge.ts";

/** The columns of an ending rollout: what its judges cost, and what it is charged. */
export function chargeEnd(store: RunStore, row: RolloutEntry, ending: Ending): Partial<RolloutEntry> {
  const { columns, judged } = chargeJudges(store, row);
  const spec = store.spec();
  const prices = spec?.money?.prices ?? null;
  if (spec === null || prices === null) return columns;
  const { turns, prompt_tokens, cached_tokens, completion_tokens } = row;
  const use = { turns, policy: { prompt_tokens, cached_tokens, completion_tokens }, judged };
  return { ...columns, charge: JSON.stringify(chargeOf(prices, { ...endOf(spec, row, ending), ...use })) };
}
