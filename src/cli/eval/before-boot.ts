/**
 * Checks a request before an own platform is booted for it: the environment's arguments and judges, the model, the dataset.
 * A boot takes seconds, and the platform would refuse the same request with the same words.
 */
import { knownEnvironment } from "@rollcall/policy/known-environments";
import { argumentsFault, judgesFault, type RequestFault, unbuiltFault } from "../../core/protocol/request-faults.ts";
import { environmentRequirements } from "../../local/load-environment.ts";
import type { NamedEnvironment } from "../connect.ts";
import { CommandError, EXIT, hintOf, usageError } from "../exit.ts";
import type { DraftRequest } from "./draft-request.ts";
import { checkReachable, chooseModel, unknownEnvironment } from "./request.ts";

export interface UncheckedRequest {
  readonly draft: DraftRequest;
  /** The request will name a dataset. */
  readonly hasDataset: boolean;
  readonly force: boolean;
  readonly policyOnly: boolean;
}

/** Stands for the policy server of the platform that will be booted. */
const POLICY = "http://127.0.0.1/v1";

/** `known`: ids of the environments that come with Rollcall. Throws a CommandError that names the field. */
export async function checkBeforeBoot(
  { draft, hasDataset, force, policyOnly }: UncheckedRequest,
  { here, name }: NamedEnvironment,
  known: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (here === null) {
    // What an organisation has published is only known to the platform.
    if (name.includes("/")) return;
    throw unknownEnvironment(name, known);
  }
  const options = { force, policyOnly, log: () => undefined };
  const { endpoint } = chooseModel(draft, here.id, { policyUrl: POLICY }, options);
  const args = draft.environment_args ?? knownEnvironment(here.id)?.environment_args ?? {};
  const required = await environmentRequirements(here, args, { signal });
  const fault =
    required.fault !== null
      ? argumentsFault(required.fault)
      : "unbuilt" in required
        ? unbuiltFault(here.id, required.unbuilt)
        : judgesFault(here.id, required.judges, Object.keys(draft.judges ?? {}));
  if (fault !== null) throw refusal(fault);
  if ("hasRows" in required && !required.hasRows && !hasDataset) {
    throw usageError(`${here.id} has no rows of its own: add --dataset`, "dataset");
  }
  if (typeof endpoint === "object" && endpoint.base_url !== POLICY) await checkReachable(endpoint.base_url);
}

function refusal({ code, message, param }: RequestFault): CommandError {
  const type = "invalid_request_error";
  return new CommandError(EXIT.usage, { code, message: message + hintOf({ code, param }), param, type });
}
