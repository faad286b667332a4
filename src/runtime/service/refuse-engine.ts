/**
 * Whether a training run may train on what its endpoint samples: it is asked anew for each run, with the run's model and the fields that
 * the run sends, since a server may have been started with other flags since it was added. One that does not answer now is taken
 * for what it was last seen to be; where nobody has seen that, the run is refused.
 */
import { probeEndpoint } from "../../clients/probe.ts";
import type { EndpointCapabilities } from "../../contract/endpoint.ts";
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { Scope } from "../../contract/scope.ts";
import { whyUntrainable } from "../../core/training/engine-exactness.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { accessOf, EndpointUnusable } from "../endpoint/endpoints.ts";
import type { RunEndpoint } from "./run-endpoint.ts";

export async function refuseEngine(
  env: Env,
  scope: Scope,
  request: Pick<EvalRequest, "model" | "sampling">,
  endpoint: RunEndpoint,
  now: number,
): Promise<Result<never> | null> {
  try {
    const access = await accessOf(env, scope, endpoint.place);
    const { model, sampling } = request;
    const seen = await probeEndpoint({ ...access, model, usual: null, sampling, now });
    const why = whyUntrainable(isSilent(seen) ? (endpoint.capabilities ?? seen) : seen);
    return why === null ? null : refuse("invalid_request", `endpoint: ${why}`, "endpoint");
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return refuse("conflict", `${thrown.message}: give it again`, "endpoint");
  }
}

/** It did not come as far as saying what it supports. */
function isSilent({ chat, exactness, error }: EndpointCapabilities): boolean {
  return error !== null && (!chat || exactness === null);
}
