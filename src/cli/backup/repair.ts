/** Repairs the rows of runs of a deployment, one part at a time. */
import { RepairedPage } from "../../backup/wire.ts";
import type { OperatorClient } from "./operator-client.ts";

/** Runs that are listed by name; all of them are counted. */
const MOST_LISTED = 1000;
const LOG_EVERY = 1000;

/** The sums over all parts. `next`: where a repair that is interrupted continues; null once it is complete. */
export interface Repaired extends RepairedPage {
  readonly unowned_runs: number;
  readonly failed_runs: number;
}

export const NOTHING_REPAIRED: Repaired = {
  ...{ checked: 0, restored: 0, updated: 0, indexed: 0, deleted: 0, unowned_runs: 0, failed_runs: 0 },
  ...{ unowned: [], failed: [], next: null },
};

/** `onPart`: called after each part with the sums so far. */
export async function repairDeployment(
  operator: OperatorClient,
  after: string | undefined,
  { log, onPart }: { readonly log: (line: string) => void; readonly onPart: (sums: Repaired) => void },
): Promise<Repaired> {
  let sums = NOTHING_REPAIRED;
  let logged = 0;
  for (let at = after ?? null; ; at = sums.next) {
    const part = await operator.ask("/repair", at === null ? {} : { after: at }, undefined, RepairedPage);
    sums = add(sums, part);
    onPart(sums);
    if (part.next === null) return sums;
    if (sums.checked >= logged + LOG_EVERY) {
      logged = sums.checked;
      log(`${sums.checked} runs checked, ${sums.restored} restored`);
    }
  }
}

function add(sums: Repaired, part: RepairedPage): Repaired {
  return {
    checked: sums.checked + part.checked,
    restored: sums.restored + part.restored,
    updated: sums.updated + part.updated,
    indexed: sums.indexed + part.indexed,
    deleted: sums.deleted + part.deleted,
    unowned_runs: sums.unowned_runs + part.unowned.length,
    failed_runs: sums.failed_runs + part.failed.length,
    unowned: [...sums.unowned, ...part.unowned].slice(0, MOST_LISTED),
    failed: [...sums.failed, ...part.failed].slice(0, MOST_LISTED),
    next: part.next,
  };
}
