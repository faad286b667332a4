/** What the platform charges for a rollout, read from its row (charges.ts writes it). */
import type { ChargeLines } from "../../contract/money.ts";
import { sumOfLines } from "../../core/costs/run-costs.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

/** By line; empty if nothing is charged. */
export function linesOf({ charge }: Pick<RolloutEntry, "charge">): ChargeLines {
  return charge === null ? {} : (JSON.parse(charge) as ChargeLines);
}

/** Micro-dollars. */
export function chargedBy({ charge }: { readonly charge?: string | null }): number {
  return sumOfLines(linesOf({ charge: charge ?? null }));
}
