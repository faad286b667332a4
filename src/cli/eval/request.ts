/**
 * Completes a request for a run: requests the platform's environments, chooses the model and its endpoint, and checks
 * that the endpoint answers. It starts nothing.
 */

import {
  KNOWN_ENVIRONMENTS,
  knownEnvironment,
  POLICY_MODEL,
  POLICY_SAMPLING,
} from "@rollcall/policy/known-environments";
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { EnvironmentView } from "../../contract/run.ts";
import type { Page } from "../../sdk/options.ts";
import type { Connection, NamedEnvironment } from "../connect.ts";
import { type CommandError, unreachable, usageError } from "../exit.ts";
import type { DraftRequest } from "./draft-request.ts";

/** The bundled policy runs on this machine: its tokens cost nothing. */
const FREE = { input_per_mtok_micros: 0, output_per_mtok_micros: 0 };

type Choice = Pick<EvalRequestInput, "endpoint" | "fleet" | "model"> & Partial<EvalRequestInput>;

export interface ChoiceOptions {
  /** The policy may play environments that it was not trained on. */
  readonly force: boolean;
  /** The policy must play: ignores the endpoints and fleets of the draft and of OPENAI_BASE_URL. */
  readonly policyOnly?: boolean;
  readonly log: (line: string) => void;
}

/** A generated dataset has no end; this many of its tasks are enough for a first look. */
const GENERATED_EXAMPLES = 5;
const ENDPOINT_ANSWERS_WITHIN_MS = 5000;

export async function completeRequest(
  draft: DraftRequest,
  connection: Connection,
  options: ChoiceOptions,
): Promise<EvalRequestInput> {
  const { environment, played } = await completePlay(draft, connection, options);
  return { ...played, num_examples: examplesFor(draft, environment) };
}

export interface Played {
  readonly environment: EnvironmentView;
  /** The draft, completed with its environment, model and endpoint. */
  readonly played: EvalRequestInput;
}

/** Completes the fields that runs of any kind share. */
export async function completePlay(
  draft: DraftRequest,
  connection: Connection,
  options: ChoiceOptions,
): Promise<Played> {
  const named = connection.environment;
  if (named === null) throw usageError("an environment is required", "environment");
  const environment = await findEnvironment(named, connection);
  if (environment.dataset === "uploaded" && draft.dataset === undefined) {
    throw usageError(`${environment.id} has no rows of its own: add --dataset`, "dataset");
  }
  const choice = chooseModel(draft, environment.id, connection, options);
  const played: EvalRequestInput = { ...draft, environment: named.name, ...choice };
  const { endpoint } = played;
  // From here one cannot check an endpoint that a remote platform calls, nor one that has only a name.
  if (connection.kind !== "remote" && typeof endpoint === "object") {
    await checkReachable(endpoint.base_url);
  }
  return { environment, played };
}

async function findEnvironment(
  { name, own, reference }: NamedEnvironment,
  connection: Connection,
): Promise<EnvironmentView> {
  // One that an organisation has published; the platform says why it has none.
  if (name.includes("/")) return await connection.client.environments.get(name);
  const [id] = name.split("@");
  const page: unknown = await connection.client.environments.list();
  if (!isPage(page)) {
    throw unreachable(`${connection.url} answers, but is not a Rollcall platform`, undefined);
  }
  const found = page.data.find((environment) => environment.id === id);
  if (found !== undefined) return found;
  const known = page.data.map((environment) => environment.id).join(", ");
  if (own !== null) {
    throw usageError(
      `${connection.url} does not have ${id}, and code is not sent to remote platforms: play ` +
        `${reference} here, without --platform and ROLLCALL_URL. It has: ${known}`,
      "environment",
    );
  }
  throw unknownEnvironment(
    name,
    page.data.map((environment) => environment.id),
  );
}

export function unknownEnvironment(name: string, known: readonly string[]): CommandError {
  const [id] = name.split("@");
  return usageError(
    `no environment is called ${id}; known: ${known.join(", ")}. For your own environment, use its folder: ./${id}`,
    "environment",
  );
}

/** A server of another kind may answer 200 with any body. */
function isPage(answer: unknown): answer is Pick<Page<EnvironmentView>, "data"> {
  return typeof answer === "object" && answer !== null && "data" in answer && Array.isArray(answer.data);
}

function examplesFor(draft: DraftRequest, environment: EnvironmentView): number {
  return draft.num_examples ?? (environment.dataset === "generated" ? GENERATED_EXAMPLES : -1);
}

/** Any answer is enough: not every endpoint lists its models. */
export async function checkReachable(baseUrl: string): Promise<void> {
  try {
    const signal = AbortSignal.timeout(ENDPOINT_ANSWERS_WITHIN_MS);
    const reply = await fetch(`${baseUrl.replace(/\/+$/, "")}/models`, { signal });
    await reply.body?.cancel();
  } catch (error) {
    // A slow endpoint still counts as reachable; only a refused connection does not.
    if (error instanceof DOMException && error.name === "TimeoutError") return;
    throw unreachable(`the endpoint ${baseUrl} is not reachable`, error);
  }
}

/**
 * Chooses the model of a run: that of the named fleet or endpoint, else of OPENAI_BASE_URL, else the policy of a local
 * platform. The policy was trained on a few environments, at the sizes in its table; others are refused unless the user
 * insists. A seed that the user gives is also the seed of the policy's sampling. `environment` is its id.
 */
export function chooseModel(
  draft: DraftRequest,
  environment: string,
  connection: Pick<Connection, "policyUrl">,
  options: ChoiceOptions,
): Choice {
  if (draft.fleet !== undefined && options.policyOnly !== true) {
    if (draft.model === undefined) throw usageError("a model is required: -m", "model");
    return { model: draft.model, fleet: draft.fleet };
  }
  const endpoint = options.policyOnly === true ? null : namedEndpoint(draft);
  if (endpoint === null) return policyChoice(draft, environment, connection.policyUrl, options);
  if (draft.model === undefined) throw usageError("a model is required: -m", "model");
  return { model: draft.model, endpoint };
}

/** Null if neither the command nor the environment names one. */
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
  { force, policyOnly = false, log }: ChoiceOptions,
): Choice {
  if (draft.model !== undefined && draft.model !== POLICY_MODEL) {
    throw usageError(`the endpoint of ${draft.model} is required: -b`, "base-url");
  }
  if (draft.answer_cache === true) {
    const why = "the weights of the bundled policy change with each training, and the cache would not notice";
    throw usageError(`${why}: set another endpoint with -b or -e`, "cache");
  }
  const needed = `${environment} needs a model: set its endpoint with -b`;
  if (policyUrl === null) throw usageError(needed, "base-url");
  const known = knownEnvironment(environment);
  if (known === undefined && !force) {
    const names = KNOWN_ENVIRONMENTS.map((it) => it.environment).join(", ");
    throw usageError(
      `${needed}. The bundled policy only knows ${names}; use --force to let it play anyway`,
      "base-url",
    );
  }
  if (!policyOnly) {
    log(`No -b and no OPENAI_BASE_URL: the bundled policy plays ${environment}.`);
  }
  const args = draft.environment_args ?? known?.environment_args;
  return {
    model: POLICY_MODEL,
    endpoint: { base_url: policyUrl, prices: FREE },
    sampling: {
      ...(known?.sampling ?? POLICY_SAMPLING),
      ...(draft.seed !== undefined && { seed: draft.seed }),
      ...draft.sampling,
    },
    ...(args !== undefined && { environment_args: args }),
  };
}
