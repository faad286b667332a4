/**
 * The prices of a run, pinned when it is created, and the reasons why it cannot have a cost cap: calls without a bound,
 * and tokens without a price. The slice that charges supplies the platform's own prices.
 */

import type { EvalRequest } from "../../../contract/eval-request.ts";
import type { ResolvedJudge } from "../../../contract/judgement.ts";
import type { BillingMode } from "../../../contract/money.ts";
import type { PinnedPrices, RunMoney } from "../../../contract/run-spec.ts";
import { mergeSampling, type Sampling } from "../../../contract/sampling.ts";
import type { EnvironmentDescription } from "../../../core/protocol/environment-code.ts";
import { sizeOfCall } from "../../clients/call-size.ts";
import { unboundedField } from "../../clients/unbounded-field.ts";
import { type Result, refuse } from "../../messages/refusal.ts";
import { charges, type Priced } from "../../run/charges.ts";
import { judgePath, type RunEndpoint } from "./endpoint.ts";

/** `now`: epoch milliseconds. */
export async function moneyOf(
  env: Env,
  billing: BillingMode,
  { policy, judges }: Priced,
  now: number,
): Promise<Omit<RunMoney, "payer">> {
  const own = { policy: policy?.prices ?? null };
  const prices = await charges().pricesOf(env, billing, { policy, judges }, now);
  if (prices === null) return { ...own, prices };
  const asked = Object.entries(judges).map(([name, { base_url }]) => [name, base_url] as const);
  return { ...own, prices, addresses: { policy: policy?.base_url ?? null, judges: Object.fromEntries(asked) } };
}

/** What the run calls, and what is known about it. */
interface Called {
  readonly description: EnvironmentDescription;
  readonly endpoint: Pick<RunEndpoint, "shown" | "prices">;
  readonly judges: Readonly<Record<string, ResolvedJudge>>;
  /** Null if the platform charges nothing. */
  readonly prices: Pick<PinnedPrices, "policy" | "judges"> | null;
}

/** Null for a run without a cap, and for a run whose cap can be kept. */
export function refuseCap(
  request: Pick<EvalRequest, "max_cost_micros" | "sampling" | "judges">,
  { description, endpoint, judges, prices }: Called,
): Result<never> | null {
  if (request.max_cost_micros === undefined) return null;
  const asked = description.players.map(({ sampling }) => mergeSampling(sampling, request.sampling));
  const unbounded = asked.map((sampling) => refuseSampling(sampling, "sampling", "a turn"));
  const first = unbounded.find((refused) => refused !== null);
  if (first !== undefined) return first;
  const { fleet, endpoint: one } = endpoint.shown;
  if (endpoint.prices === null && !prices?.policy) {
    return fleet === null ? unpriced("endpoint", one?.name ?? null) : unpriced("fleet", fleet.name);
  }
  for (const [name, judge] of Object.entries(judges)) {
    const unbounded = refuseSampling(judge.sampling, `${judgePath(name)}.sampling`, "a judgement");
    if (unbounded !== null) return unbounded;
    const given = request.judges[name]?.endpoint;
    const shown = typeof given === "string" ? given : null;
    if (judge.prices === undefined && !prices?.judges[name]) return unpriced(`${judgePath(name)}.endpoint`, shown);
  }
  return null;
}

/** Null if a call has a bound. `what`: the purpose of the call, for the message. */
function refuseSampling(sampling: Sampling, path: string, what: string): Result<never> | null {
  const field = unboundedField(sampling.extra_body ?? {});
  if (field !== null) {
    const param = `${path}.extra_body.${field.path}`;
    return refuse("invalid_request", `max_cost_micros cannot be combined with ${param}: ${field.why}`, param);
  }
  const { most_tokens } = sizeOfCall({ model: "", messages: [], tools: [], sampling });
  if (most_tokens !== null) return null;
  const param = `${path}.max_tokens`;
  const message = `max_cost_micros needs ${param}: without it the cost of ${what} is not limited`;
  return refuse("max_tokens_required", message, param);
}

/** `name`: of a fleet, or of an endpoint that exists already; null for an inline endpoint. */
function unpriced(param: string, name: string | null): Result<never> {
  const what = param === "fleet" ? "fleet" : "endpoint";
  const how = name === null ? `${param}.prices` : `PATCH /v1/${what}s/${name}`;
  const message = `max_cost_micros needs the prices of the ${what}${name === null ? "" : ` ${name}`}: ${how}`;
  return refuse("prices_required", message, param);
}
