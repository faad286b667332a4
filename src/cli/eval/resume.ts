/**
 * `--resume`: continues an existing run with its settings. Rollouts that failed or have no score get another attempt;
 * scored ones are never played again. Flags may repeat the run's settings but not change them: the error lists every
 * difference, with the run's value and the value that was given.
 */
import { isDeepStrictEqual } from "node:util";
import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import { hasEnded } from "../follow.ts";
import { countText } from "../terminal/format.ts";
import type { DraftRequest } from "./draft-request.ts";

/** Used in place of an id: the newest run that is not finished, of the environment if one is named. */
const LAST = "last";

export interface Resuming {
  readonly client: RollcallClient;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

export async function resumeRun(
  asked: string,
  draft: DraftRequest,
  { client, log, signal }: Resuming,
): Promise<RunView> {
  const run = asked === LAST ? await lastRun(client, draft, signal) : await client.runs.get(asked, { signal });
  refuseChanges(run, draft);
  if (run.status === "paused") return await client.runs.resume(run.id, { signal });
  const left = withoutScore(run);
  if (!hasEnded(run) || left === 0) return run;
  const again = await client.runs.retry(run.id, {}, { signal });
  log(`Run ${run.id} continues: ${countText(left)} of ${countText(slotsIn(run))} rollouts are left`);
  return again;
}

/** The number of rollouts whose latest attempt has no score. */
function withoutScore(run: RunView): number {
  return run.status === "cancelled" ? 0 : slotsIn(run) - run.report.reward.n_rollouts;
}

function slotsIn({ num_examples, rollouts_per_example }: RunView): number {
  return num_examples * rollouts_per_example;
}

async function lastRun(client: RollcallClient, { environment }: DraftRequest, signal: AbortSignal): Promise<RunView> {
  for await (const listed of client.runs.list({ environment }, { signal })) {
    // The list may be out of date for a run that has just ended.
    const run = hasEnded(listed) ? listed : await client.runs.get(listed.id, { signal });
    if (run.status !== "cancelled" && (!hasEnded(run) || withoutScore(run) > 0)) return run;
  }
  const of = environment === undefined ? "" : ` of ${environment}`;
  throw usageError(`--resume: there is no run${of} to continue`, "resume");
}

/** Exit code 2, with every field that differs, the run's value and the value that was given. */
function refuseChanges(run: RunView, draft: DraftRequest): void {
  const changes = [...changesIn(run, draft)];
  const [first] = changes;
  if (first === undefined) return;
  const said = changes.map(({ field, has, asked }) => {
    return `${field} is ${JSON.stringify(has)}, not ${JSON.stringify(asked)}`;
  });
  throw new CommandError(EXIT.usage, {
    code: "conflict",
    message: `${run.id} cannot be changed: ${said.join("; ")}. Start a new run instead`,
    param: first.field,
    type: "invalid_request_error",
  });
}

interface Change {
  readonly field: string;
  readonly has: unknown;
  readonly asked: unknown;
}

function* changesIn(run: RunView, draft: DraftRequest): Generator<Change> {
  const { environment, sampling, num_examples } = draft;
  const { id, version } = run.environment;
  if (environment !== undefined && !names(environment, id, version)) {
    yield { field: "environment", has: `${id}@${version}`, asked: environment };
  }
  yield* changesOfPlace(run, draft);
  if (num_examples !== -1 && differs(run.num_examples, num_examples)) {
    yield { field: "num_examples", has: run.num_examples, asked: num_examples };
  }
  for (const field of ["model", "rollouts_per_example", "shuffle", "seed"] as const) {
    if (differs(run[field], draft[field])) yield { field, has: run[field], asked: draft[field] };
  }
  if (differs(run.answer_cache ?? false, draft.answer_cache)) {
    yield { field: "answer_cache", has: run.answer_cache ?? false, asked: draft.answer_cache };
  }
  if (differs(run.prompts ?? "messages", draft.prompts)) {
    yield { field: "prompts", has: run.prompts ?? "messages", asked: draft.prompts };
  }
  yield* changesOfMembers("agent", run.agent ?? { name: null }, draft.agent);
  yield* changesOfMembers("environment_args", run.environment_args, draft.environment_args);
  yield* changesOfMembers("sampling", run.sampling, sampling);
}

/** The differences of the endpoint or fleet where the model is called. */
function* changesOfPlace(run: RunView, { endpoint, fleet }: DraftRequest): Generator<Change> {
  const has = run.endpoint?.name ?? run.endpoint?.base_url ?? null;
  if (typeof endpoint === "string" && endpoint !== run.endpoint?.name && endpoint !== run.endpoint?.id) {
    yield { field: "endpoint", has, asked: endpoint };
  }
  if (typeof endpoint === "object" && differs(run.endpoint?.base_url ?? null, endpoint.base_url)) {
    yield { field: "endpoint", has: run.endpoint?.base_url ?? null, asked: endpoint.base_url };
  }
  if (fleet !== undefined && fleet !== run.fleet?.name && fleet !== run.fleet?.id) {
    yield { field: "fleet", has: run.fleet?.name ?? run.fleet?.id ?? null, asked: fleet };
  }
}

/** Members that were not given keep the run's values. */
function* changesOfMembers(
  field: string,
  has: Readonly<Record<string, unknown>>,
  asked: Readonly<Record<string, unknown>> = {},
): Generator<Change> {
  for (const [name, value] of Object.entries(asked)) {
    if (differs(has[name], value)) yield { field: `${field}.${name}`, has: has[name], asked: value };
  }
}

function differs(has: unknown, asked: unknown): boolean {
  return asked !== undefined && !isDeepStrictEqual(has, asked);
}

/** Whether `id` or `id@version` names this environment; the minor and patch version may be missing. */
function names(named: string, id: string, version: string): boolean {
  const [wantedId, wanted] = named.split("@", 2);
  if (wantedId !== id) return false;
  return wanted === undefined || version === wanted || version.startsWith(`${wanted}.`);
}
