/** Fills what the flags left open in a run request, from the environment and from what the platform offers. */
import { LIMITS } from "../core/limits.ts";
import type { EnvironmentView, RunRequestInput } from "../core/run.ts";
import { DEMO_ENVIRONMENTS, DEMO_MODEL } from "../local/demo-model.ts";
import type { Connection } from "./connect.ts";
import type { DraftRequest } from "./eval-arguments.ts";
import { unreachable, usageError } from "./exit.ts";

/** A generated dataset has no end; this many of its tasks are a first look. */
const GENERATED_EXAMPLES = 5;
const ENDPOINT_ANSWERS_WITHIN_MS = 5000;

export async function completeRequest(
  draft: DraftRequest,
  connection: Connection,
  say: (line: string) => void,
): Promise<RunRequestInput> {
  if (draft.environment === undefined) throw usageError("name an environment", "environment");
  const environment = await findEnvironment(draft.environment, connection);
  const request: RunRequestInput = {
    ...draft,
    environment: draft.environment,
    ...modelFor(draft, environment, connection, say),
    num_examples: examplesFor(draft, environment),
  };
  const bytes = Buffer.byteLength(JSON.stringify(request));
  if (bytes > LIMITS.requestBodyBytes) {
    throw usageError(
      `the run with its ${draft.dataset?.length ?? 0} rows has ${bytes} bytes; ` +
        `rows are sent with the run, and its limit is ${LIMITS.requestBodyBytes}`,
      "dataset",
    );
  }
  // Whether a platform elsewhere reaches the endpoint cannot be seen from here.
  if (connection.kind !== "remote") await checkReachable(request.endpoint.base_url);
  return request;
}

async function findEnvironment(name: string, connection: Connection): Promise<EnvironmentView> {
  const [id] = name.split("@");
  const all: unknown = await connection.client.environments();
  if (!isList(all)) {
    throw unreachable(`${connection.url} answers, but is no Rollcall platform`, undefined);
  }
  const found = all.find((environment) => environment.id === id);
  if (found !== undefined) return found;
  const known = all.map((environment) => environment.id).join(", ");
  throw usageError(`no environment is called ${id}; there are: ${known}`, "environment");
}

/** A server of another kind may answer 200 with anything. */
function isList(answer: unknown): answer is readonly EnvironmentView[] {
  return Array.isArray(answer);
}

function modelFor(
  draft: DraftRequest,
  environment: EnvironmentView,
  connection: Connection,
  say: (line: string) => void,
): Pick<RunRequestInput, "endpoint" | "model"> {
  const usual = process.env["OPENAI_BASE_URL"];
  const baseUrl = draft.endpoint?.base_url ?? usual;
  if (baseUrl !== undefined && baseUrl !== "") {
    if (draft.model === undefined) throw usageError("name a model with -m", "model");
    const key = draft.endpoint?.api_key ?? (draft.endpoint?.base_url ? "" : openAiKey());
    return { model: draft.model, endpoint: { base_url: baseUrl, ...(key && { api_key: key }) } };
  }
  if (!DEMO_ENVIRONMENTS.includes(environment.id) || connection.demoModelUrl === null) {
    throw usageError(`${environment.id} needs a model: name its endpoint with -b`, "base-url");
  }
  say(`No -b and no OPENAI_BASE_URL: the scripted demo model plays ${environment.id}.`);
  return { model: draft.model ?? DEMO_MODEL, endpoint: { base_url: connection.demoModelUrl } };
}

function openAiKey(): string {
  return process.env["OPENAI_API_KEY"] ?? "";
}

function examplesFor(draft: DraftRequest, environment: EnvironmentView): number {
  if (environment.dataset === "uploaded" && draft.dataset === undefined) {
    throw usageError(
      `${environment.id} has no rows of its own: give some with --dataset`,
      "dataset",
    );
  }
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
