/**
 * Accepts a run: everything that can be wrong with it is said here, before anything is stored.
 *
 * Order: check → rows to R2 → run and endpoint to D1 in one batch → the run's object. A kill in between leaves rows that
 * no run names, or a queued run whose object the next read (or a repeat of the key) creates.
 */
import type { RegisteredEnvironment } from "../../environments/registry.ts";
import type { ErrorCode } from "../core/api-error.ts";
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import { mintId, mintRunId } from "../core/ids.ts";
import type { JsonObject } from "../core/json.ts";
import { LIMITS } from "../core/limits.ts";
import type { RunDataset, RunRequest, RunView } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { buildTask, parseRow, RowError } from "../core/task.ts";
import { runViewOf } from "../db/run-view.ts";
import { findRunByIdempotencyKey, insertRun, type NewEndpoint, type NewRun } from "../db/runs.ts";
import { OFFERED_NEEDS } from "./capabilities.ts";
import { rowsText } from "./datasets.ts";
import { findEnvironment, pinOf } from "./environments.ts";
import { datasetKey, runObject } from "./names.ts";
import { idMac, seal, sha256Hex } from "./secrets.ts";
import { Subrequests } from "./subrequests.ts";
import type { EnvironmentPin, RunSpec } from "./wire.ts";

export type Refusal = { code: ErrorCode; message: string; param: string | null };
export type Result<T> = { ok: true; value: T } | { ok: false; error: Refusal };

/** Members of a group that is scored as one: each may be a read, within one invocation's subrequests. */
const WHOLE_GROUP = 400;

interface Checked {
  readonly pin: EnvironmentPin;
  readonly environment: AnyEnvironment;
  readonly kind: RunDataset["kind"];
  readonly rows: readonly unknown[] | null;
  readonly length: number | null;
  readonly num_examples: number;
}

export interface AcceptOptions {
  readonly idempotencyKey: string | null;
  readonly requestHash: string;
  readonly now: number;
}

export async function acceptRun(
  env: Env,
  scope: Scope,
  request: RunRequest,
  options: AcceptOptions,
): Promise<Result<{ run: RunView; replayed: boolean }>> {
  const repeated = await replay(env, scope, options);
  if (repeated !== null) return repeated;
  const checked = await check(request);
  if (!checked.ok) return checked;
  const subrequests = new Subrequests();
  const runId = mintRunId(minting(env, options.now));
  const dataset = await storeRows(env, scope, runId, checked.value, subrequests);
  const endpoint = await sealedEndpoint(env, scope, request, options.now);
  const spec = specOf(scope, runId, request, checked.value, dataset, endpoint.id, options.now);
  const run = rowOf(spec, request, options);
  const inserted = await subrequests.fetch(() => insertRun(env.DB, scope, run, endpoint));
  // Another request with the same key was faster: its run is the one.
  if (inserted === "conflict") {
    return (await replay(env, scope, options)) ?? conflict();
  }
  await subrequests.object(() => runObject(env, scope, runId).create(spec));
  const view = runViewOf({
    run: { ...run, org_id: scope.orgId, project_id: scope.projectId },
    endpoint,
  });
  return { ok: true, value: { run: view, replayed: false } };
}

/** What the run's object is created with, from its row: for a run whose creation was cut short. */
export function specOfRow(scope: Scope, run: NewRun): RunSpec {
  const { request } = run;
  return {
    scope,
    run_id: run.id,
    environment: {
      id: run.environment_id,
      version: run.environment_version,
      digest: run.environment_digest,
    },
    environment_args: request.environment_args as JsonObject,
    dataset: request.resolved.dataset,
    model: run.model,
    endpoint_id: run.endpoint_id,
    sampling: request.sampling,
    limits: request.limits,
    seed: request.seed,
    shuffle: request.shuffle,
    num_examples: run.planned / request.rollouts_per_example,
    rollouts_per_example: request.rollouts_per_example,
    max_concurrent: request.max_concurrent,
    min_scored: request.min_scored,
    whole_groups: request.resolved.whole_groups,
    created_at: run.created_at,
  };
}

async function replay(
  env: Env,
  scope: Scope,
  { idempotencyKey, requestHash }: AcceptOptions,
): Promise<Result<{ run: RunView; replayed: boolean }> | null> {
  if (idempotencyKey === null) return null;
  const record = await findRunByIdempotencyKey(env.DB, scope, idempotencyKey);
  if (record === null) return null;
  if (record.run.request_hash !== requestHash) return conflict();
  const { run } = record;
  if (run.status === "queued") {
    await runObject(env, scope, run.id).create(specOfRow(scope, run));
  }
  return { ok: true, value: { run: runViewOf(record), replayed: true } };
}

async function check(request: RunRequest): Promise<Result<Checked>> {
  const registered = findEnvironment(request.environment);
  if (registered === null) {
    return refuse("not_found", `no environment ${request.environment}`, "environment");
  }
  const args = registered.args.safeParse(request.environment_args);
  if (!args.success) return refuseArgs(args.error.issues[0]);
  const unmet = registered.needs.find((need) => !OFFERED_NEEDS.includes(need));
  if (unmet !== undefined) {
    const message = `${registered.id} needs ${unmet}, which this platform does not offer`;
    return refuse("unmet_need", message, "environment");
  }
  const environment = await built(registered, request.environment_args);
  if (environment instanceof Error) {
    const message = `${registered.id} cannot be built from these arguments: ${environment.message}`;
    return refuse("invalid_request", message, "environment_args");
  }
  const judge = environment.rubric.judges[0];
  if (judge !== undefined) {
    return refuse("missing_judge", `${registered.id} needs the judge ${judge}`, "judges");
  }
  return checkDataset(request, environment, pinOf(registered));
}

/** The environment, or what its own code had to say against the arguments. */
async function built(
  registered: RegisteredEnvironment,
  args: unknown,
): Promise<AnyEnvironment | Error> {
  try {
    return await registered.load(args);
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}

function checkDataset(
  request: RunRequest,
  environment: AnyEnvironment,
  pin: EnvironmentPin,
): Result<Checked> {
  const source = environment.evalDataset ?? environment.dataset;
  const rows = request.dataset ?? null;
  if (rows === null && source.kind === "uploaded") {
    return refuse(
      "invalid_request",
      `${pin.id} has no rows of its own: dataset is required`,
      "dataset",
    );
  }
  const bad = rows === null ? null : firstBadRow(environment, rows);
  if (bad !== null) return bad;
  const length = rows?.length ?? source.length;
  const num_examples = countExamples(request, length);
  if (num_examples === null) {
    return refuse(
      "invalid_request",
      `${pin.id} makes tasks without end: say how many`,
      "num_examples",
    );
  }
  if (num_examples === 0) {
    return refuse("invalid_request", `${pin.id} has no rows`, "dataset");
  }
  const members = request.rollouts_per_example;
  if (environment.rubric.hasGroupFunctions && members > WHOLE_GROUP) {
    const message = `${pin.id} scores whole groups, of at most ${WHOLE_GROUP}`;
    return refuse("too_large", message, "rollouts_per_example");
  }
  if (request.shuffle && length === null) {
    return refuse(
      "invalid_request",
      `${pin.id} makes tasks without end: they have no order`,
      "shuffle",
    );
  }
  const planned = num_examples * request.rollouts_per_example;
  if (planned > LIMITS.rolloutsPerRun) {
    const message = `${planned} rollouts; a run holds at most ${LIMITS.rolloutsPerRun}`;
    return refuse("too_large", message, "num_examples");
  }
  const kind = rows === null ? source.kind : "uploaded";
  return { ok: true, value: { pin, environment, kind, rows, length, num_examples } };
}

function countExamples(request: RunRequest, length: number | null): number | null {
  if (request.num_examples === -1) return length;
  return Math.min(request.num_examples, length ?? Number.POSITIVE_INFINITY);
}

/** Every row is made a task of before anything is stored: a bad one is named by its place. */
function firstBadRow(environment: AnyEnvironment, rows: readonly unknown[]): Result<never> | null {
  const source = environment.evalDataset ?? environment.dataset;
  for (const [index, row] of rows.entries()) {
    try {
      const text = JSON.stringify(buildTask(environment, parseRow(source, row, index), index).task);
      if (text.length > LIMITS.taskRowBytes) {
        return refuse(
          "too_large",
          `row ${index} is over ${LIMITS.taskRowBytes} bytes`,
          `rows[${index}]`,
        );
      }
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      return refuse("invalid_row", `row ${index + 1}: ${thrown.message}`, thrown.path);
    }
  }
  return null;
}

async function storeRows(
  env: Env,
  scope: Scope,
  runId: string,
  { kind, rows, length }: Checked,
  subrequests: Subrequests,
): Promise<RunDataset> {
  if (rows === null) return { kind, key: null, length };
  const text = rowsText(rows);
  const key = datasetKey(scope, runId, sha256Hex(text));
  await subrequests.fetch(() => env.STORE.put(key, text));
  return { kind, key, length };
}

async function sealedEndpoint(
  env: Env,
  scope: Scope,
  { endpoint }: RunRequest,
  now: number,
): Promise<NewEndpoint> {
  const id = mintId("ep", minting(env, now));
  const { base_url, api_key } = endpoint;
  return {
    id,
    base_url,
    sealed_key:
      api_key === undefined
        ? null
        : await seal(env.ROLLCALL_SECRET, api_key, `${scope.orgId}/${id}`),
    api_key_last4: last4Of(api_key),
    created_at: now,
  };
}

function specOf(
  scope: Scope,
  run_id: string,
  request: RunRequest,
  { pin, environment, num_examples }: Checked,
  dataset: RunDataset,
  endpoint_id: string,
  created_at: number,
): RunSpec {
  const { model, sampling, limits, seed, shuffle, rollouts_per_example } = request;
  return {
    scope,
    run_id,
    environment: pin,
    // It came through JSON.parse, so it is JSON.
    environment_args: request.environment_args as JsonObject,
    dataset,
    model,
    endpoint_id,
    sampling,
    limits,
    seed,
    shuffle,
    num_examples,
    rollouts_per_example,
    max_concurrent: request.max_concurrent,
    min_scored: request.min_scored,
    whole_groups: environment.rubric.hasGroupFunctions,
    created_at,
  };
}

function rowOf(spec: RunSpec, request: RunRequest, options: AcceptOptions): NewRun {
  const { dataset: _rows, endpoint: _key, ...kept } = request;
  const { dataset, whole_groups, environment } = spec;
  return {
    id: spec.run_id,
    kind: request.kind,
    name: request.name ?? null,
    status: "queued",
    environment_id: environment.id,
    environment_version: environment.version,
    environment_digest: environment.digest,
    model: request.model,
    endpoint_id: spec.endpoint_id,
    request: { ...kept, resolved: { dataset, whole_groups } },
    dataset_key: dataset.key,
    planned: spec.num_examples * spec.rollouts_per_example,
    idempotency_key: options.idempotencyKey,
    request_hash: options.requestHash,
    counts: null,
    report: null,
    error: null,
    metadata: request.metadata,
    created_at: options.now,
    finished_at: null,
  };
}

/** Enough to recognise a key by; nothing of one so short that four characters would give it away. */
function last4Of(key: string | undefined): string | null {
  return key === undefined || key.length < 12 ? null : key.slice(-4);
}

function minting(env: Env, now: number) {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  return { now, random, mac: idMac(env.ROLLCALL_SECRET) };
}

type Issue = NonNullable<
  ReturnType<RegisteredEnvironment["args"]["safeParse"]>["error"]
>["issues"][number];

function refuseArgs(issue: Issue | undefined): Result<never> {
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const path = [
    "environment_args",
    ...(issue?.path ?? []),
    ...(unknown === undefined ? [] : [unknown]),
  ];
  const code = unknown === undefined ? "invalid_request" : "unknown_field";
  return refuse(code, issue?.message ?? "does not fit the environment", path.join("."));
}

function conflict(): Result<never> {
  const message = "this Idempotency-Key was used with another body";
  return refuse("idempotency_conflict", message, null);
}

export function refuse(code: ErrorCode, message: string, param: string | null): Result<never> {
  return { ok: false, error: { code, message, param } };
}
