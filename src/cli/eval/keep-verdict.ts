import { GATE_KEY, GATE_VERDICTS } from "../../contract/gate.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";
import type { GateResult } from "./gates.ts";

/**
 * Stores the worst verdict of the gates in the run's metadata, so that runs with a failed gate are found again. The
 * user's own pair of this name stays, and so does metadata without room. If the platform refuses, that is logged: the
 * exit code of the eval does not depend on it.
 */
export async function keepVerdict(
  client: Pick<RollcallClient, "runs">,
  { id, metadata }: Pick<RunView, "id" | "metadata">,
  gates: readonly Pick<GateResult, "verdict">[],
  log: (line: string) => void,
): Promise<void> {
  const verdict = GATE_VERDICTS.find((one) => gates.some((gate) => gate.verdict === one));
  if (verdict === undefined) return;
  const before = metadata[GATE_KEY];
  const isOurs = before === undefined || GATE_VERDICTS.some((one) => one === before);
  const pairs = { ...metadata, [GATE_KEY]: verdict };
  if (!isOurs || before === verdict || Object.keys(pairs).length > LIMITS.metadataPairs) return;
  try {
    await client.runs.update(id, { metadata: pairs });
  } catch (error) {
    if (!(error instanceof ApiRequestError)) throw error;
    log(`The verdict of the gates was not stored in the run's metadata: ${error.message}`);
  }
}
