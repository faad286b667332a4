/** What the platform charges a rollout, as it stands on its row (charges.ts puts it there). */
import type { ChargeLines } from "../../contract/money.ts";
import { sumOfLines } from "../../core/costs/run-costs.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

/** By line; nothing where nothing is charged. */
export function linesOf({ charge }: Pick<RolloutEntry, "charge">): ChargeLines {
  return charge === null ? {} : (JSON.parse(charge) as ChargeLines);
}

/** Micro-dollars. */
export function chargedBy({ charge }: { readonly charge?: string | null }): number {
  return sumOfLines(linesOf({ charge: charge ?? null }));
}
