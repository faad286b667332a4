/** Fills what the flags left open in a run request, from the environment and from what the platform offers. */
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { EnvironmentView } from "../../contract/run.ts";
import type { Connection } from "../connect.ts";
import { unreachable, usageError } from "../exit.ts";
import { type ChoiceOptions, chooseModel } from "../model-choice.ts";
import type { NamedEnvironment } from "../own-environment.ts";
import type { DraftRequest } from "./arguments.ts";

/** A generated dataset has no end; this many of its tasks are a first look. */
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
  /** The draft with its environment, its model and its endpoint. */
  readonly played: EvalRequestInput;
}

/** What a draft of a run of any kind leaves open. */
export async function completePlay(
  draft: DraftRequest,
  connection: Connection,
  options: ChoiceOptions,
): Promise<Played> {
  const named = connection.environment;
  if (named === null) throw usageError("name an environment", "environment");
  const environment = await findEnvironment(named, connection);
  if (environment.dataset === "uploaded" && draft.dataset === undefined) {
    throw usageError(`${environment.id} has no rows of its own: give some with --dataset`, "dataset");
  }
  const choice = chooseModel(draft, environment.id, connection, options);
  const played: EvalRequestInput = { ...draft, environment: named.name, ...choice };
  const { endpoint } = played;
  // Whether a platform elsewhere reaches the endpoint cannot be seen from here, nor where a named one is.
  if (connection.kind !== "remote" && typeof endpoint !== "string") {
    await checkReachable(endpoint.base_url);
  }
  return { environment, played };
}

async function findEnvironment(
  { name, own, reference }: NamedEnvironment,
  connection: Connection,
): Promise<EnvironmentView> {
  const [id] = name.split("@");
  const all: unknown = await connection.client.environments();
  if (!isList(all)) {
    throw unreachable(`${connection.url} answers, but is no Rollcall platform`, undefined);
  }
  const found = all.find((environment) => environment.id === id);
  if (found !== undefined) return found;
  const known = all.map((environment) => environment.id).join(", ");
  if (own !== null) {
    throw usageError(
      `${connection.url} does not hold ${id}, and code is not sent to a platform elsewhere: play ` +
        `${reference} here, without --platform and ROLLCALL_URL. It holds: ${known}`,
      "environment",
    );
  }
  throw usageError(
    `no environment is called ${id}; there are: ${known}. One of your own is named by its folder: ./${id}`,
    "environment",
  );
}

/** A server of another kind may answer 200 with anything. */
function isList(answer: unknown): answer is readonly EnvironmentView[] {
  return Array.isArray(answer);
}

function examplesFor(draft: DraftRequest, environment: EnvironmentView): number {
  return draft.num_examples ?? (environment.dataset === "generated" ? GENERATED_EXAMPLES : -1);
}

/** Any answer will do: not every endpoint lists its models. */
async function checkReachable(baseUrl: string): Promise<void> {
  try {
    const signal = AbortSignal.timeout(ENDPOINT_ANSWERS_WITHIN_MS);
    const reply = await fetch(`${baseUrl.replace(/\/+$/, "")}/models`, { signal });
    await reply.body?.cancel();
  } catch (error) {
    // A slow endpoint is one all the same; only one that refuses the connection is not there.
    if (error instanceof DOMException && error.name === "TimeoutError") return;
    throw unreachable(`the endpoint ${baseUrl} is not reachable`, error);
  }
}
