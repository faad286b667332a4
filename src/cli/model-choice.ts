/**
 * Which model plays a run: the endpoint that was named, else the one of OPENAI_BASE_URL, else the policy beside a local
 * platform. The policy knows a few environments, at the sizes of its table; what it has never seen is refused unless
 * the caller insists. A seed that the caller gives is that of the policy's draws as well.
 */

import {
  KNOWN_ENVIRONMENTS,
  knownEnvironment,
  POLICY_MODEL,
  POLICY_SAMPLING,
} from "../../packages/policy/known-environments.ts";
import type { EvalRequestInput } from "../contract/eval-request.ts";
import type { Connection } from "./connect.ts";
import type { DraftRequest } from "./eval/arguments.ts";
import { usageError } from "./exit.ts";

type Choice = Pick<EvalRequestInput, "endpoint" | "model"> & Partial<EvalRequestInput>;

export interface ChoiceOptions {
  /** The policy may play what it has never seen. */
  readonly force: boolean;
  /** It must: what the draft and the environment name is not looked at. */
  readonly policyOnly?: boolean;
  readonly say: (line: string) => void;
}

/** `environment` is its id. */
export function chooseModel(
  draft: DraftRequest,
  environment: string,
  connection: Pick<Connection, "policyUrl">,
  options: ChoiceOptions,
): Choice {
  const endpoint = options.policyOnly === true ? null : namedEndpoint(draft);
  if (endpoint === null) return policyChoice(draft, environment, connection.policyUrl, options);
  if (draft.model === undefined) throw usageError("name a model with -m", "model");
  return { model: draft.model, endpoint };
}

/** Null when neither the command nor the environment names one. */
function namedEndpoint({ endpoint: given }: DraftRequest): EvalRequestInput["endpoint"] | null {
  if (typeof given === "string" || given?.base_url) return given;
  const base_url = process.env["OPENAI_BASE_URL"];
  if (!base_url) return null;
  const api_key = given?.api_key ?? process.env["OPENAI_API_KEY"];
  return { base_url, ...(api_key && { api_key }) };
}

function policyChoice(
  draft: DraftRequest,
  environment: string,
  policyUrl: string | null,
  { force, policyOnly = false, say }: ChoiceOptions,
): Choice {
  if (draft.model !== undefined && draft.model !== POLICY_MODEL) {
    throw usageError(`name the endpoint of ${draft.model} with -b`, "base-url");
  }
  const needed = `${environment} needs a model: name its endpoint with -b`;
  if (policyUrl === null) throw usageError(needed, "base-url");
  const known = knownEnvironment(environment);
  if (known === undefined && !force) {
    const names = KNOWN_ENVIRONMENTS.map((it) => it.environment).join(", ");
    throw usageError(
      `${needed}. The policy beside the platform knows only ${names}; --force lets it play all the same`,
      "base-url",
    );
  }
  if (!policyOnly) {
    say(`No -b and no OPENAI_BASE_URL: the policy beside the platform plays ${environment}.`);
  }
  const args = draft.environment_args ?? known?.environment_args;
  return {
    model: POLICY_MODEL,
    endpoint: { base_url: policyUrl },
    sampling: {
      ...(known?.sampling ?? POLICY_SAMPLING),
      ...(draft.seed !== undefined && { seed: draft.seed }),
      ...draft.sampling,
    },
    ...(args !== undefined && { environment_args: args }),
  };
}
