/** Reserves money for a run before it starts, and releases it if the run does not start. */
import { plannedAtFirst, type RunSpec } from "../contract/run-spec.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Result } from "../kernel/messages/refusal.ts";
import { NEW_HEAD } from "../kernel/run/schema.ts";
import { estimateOf } from "./charging.ts";
import { ledgerObject } from "./rpc.ts";
import { factsOf } from "./settling.ts";

/** Reserves the expected charge of the first rollouts, or refuses. The reservation expires unless the run settles. */
export async function reserveFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<Result<never> | null> {
  const estimate = estimateOf(spec, NEW_HEAD);
  if (estimate === 0) return null;
  const planned = spec.training === undefined ? plannedAtFirst(spec) : spec.max_concurrent;
  const micros = estimate * Math.min(spec.max_concurrent, planned);
  const ledger = ledgerObject(env, spec.scope.orgId);
  const { short } = await subrequests.object(() => ledger.reserve({ run: factsOf(spec), micros }));
  if (short === null) return null;
  const { by, budget_id, reason, shortfall_micros } = short;
  const code = by === "budget" ? "budget_exhausted" : "insufficient_balance";
  const details = { shortfall_micros, ...(budget_id !== null && { budget_id }) };
  return { ok: false, error: { code, message: reason, param: null, details } };
}

export async function releaseFirst(env: Env, spec: RunSpec, subrequests: Subrequests): Promise<void> {
  if ((spec.money?.prices ?? null) === null) return;
  const order = { run: factsOf(spec), items: {}, reservation: 0 };
  await subrequests.object(() => ledgerObject(env, spec.scope.orgId).settle(order));
}
