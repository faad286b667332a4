/**
 * What the routes ask of the platform behind them. Failures come back as values: an error thrown across an object's
 * boundary would lose its class and code. `now` is epoch milliseconds.
 */

import type { RunAudit } from "../contract/audit.ts";
import type { CompareQuery, RunComparison } from "../contract/comparison.ts";
import type { EndpointPatch, EndpointRequest, EndpointView, SecretRequest, SecretView } from "../contract/endpoint.ts";
import type { EventName } from "../contract/event-names.ts";
import type { ExportQuery, LeftOut } from "../contract/export.ts";
import type { JsonObject } from "../contract/json.ts";
import type {
  CreatedRun,
  EnvironmentView,
  Outcome,
  ResultRow,
  RolloutInFlight,
  RolloutView,
  RunRequest,
  RunView,
} from "../contract/run.ts";
import type { ForkRequest, RescoreRequest, RetryRequest, RunPatch } from "../contract/run-control.ts";
import type { Scope } from "../contract/scope.ts";
import type { WeightLedger } from "../contract/trainer-wire.ts";
import type { StepMetrics, TrainerSecrets } from "../contract/training-view.ts";
import type { DatasetView } from "../contract/uploaded-dataset.ts";
import type { Answer, TrainerRpc } from "../runtime/contract/training-wire.ts";
import type { CreateOptions } from "../runtime/kit/idempotency.ts";
import type { SamplePart, SampleQuery, StoredBytes } from "../runtime/service/read-batch.ts";
import type { Failure } from "./errors.ts";

export type Result<T> = { ok: true; value: T } | { ok: false; error: Failure };

export type { CreateOptions, StoredBytes };
/** `replayed`: the idempotency key named what was already there. */
export interface Made<T> {
  readonly value: T;
  readonly replayed: boolean;
}

export interface RunEvent {
  readonly id: number;
  readonly event: EventName;
  readonly data: object;
}

export interface Services {
  /** `replayed`: the idempotency key named a run that was already there. */
  acceptRun(
    env: Env,
    scope: Scope,
    request: RunRequest,
    options: CreateOptions,
  ): Promise<Result<{ run: CreatedRun; replayed: boolean }>>;
  readRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
  /** Steps after this one, the first one first, at most `limit` of them. */
  readMetrics(
    env: Env,
    scope: Scope,
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<Result<StepMetrics[]>>;
  cancelRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
  pauseRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
  resumeRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
  changeRun(env: Env, scope: Scope, runId: string, patch: RunPatch): Promise<Result<RunView>>;
  retryRun(
    env: Env,
    scope: Scope,
    runId: string,
    request: RetryRequest,
    options: CreateOptions,
  ): Promise<Result<RunView>>;
  /** A new run; `replayed` as above. */
  rescoreRun(
    env: Env,
    scope: Scope,
    runId: string,
    request: RescoreRequest,
    options: CreateOptions,
  ): Promise<Result<{ run: RunView; replayed: boolean }>>;
  auditRun(env: Env, scope: Scope, runId: string, now: number): Promise<Result<RunAudit>>;
  compareRuns(env: Env, scope: Scope, runId: string, query: CompareQuery): Promise<Result<RunComparison>>;
  /** Resolves as soon as there are events after `after`, the run has ended, or `waitMs` is over. */
  readEvents(
    env: Env,
    scope: Scope,
    runId: string,
    after: number,
    waitMs: number,
  ): Promise<Result<{ events: RunEvent[]; ended: boolean }>>;
  readResults(
    env: Env,
    scope: Scope,
    runId: string,
    page: { after: number; limit: number; outcome: Outcome | null },
  ): Promise<Result<{ rows: ResultRow[]; next: number | null }>>;
  /** In the order they were dispatched; `after`: the id of the last one seen. */
  readInFlight(
    env: Env,
    scope: Scope,
    runId: string,
    page: { status: RolloutInFlight["status"] | null; after: string | null; limit: number },
  ): Promise<Result<RolloutInFlight[]>>;
  /** `next`: the cursor of the page behind this one. */
  exportRun(
    env: Env,
    scope: Scope,
    runId: string,
    query: ExportQuery,
  ): Promise<
    Result<{
      readonly rows: readonly object[];
      readonly left_out: readonly LeftOut[];
      readonly next: string | null;
    }>
  >;
  readRollout(env: Env, scope: Scope, rolloutId: string): Promise<Result<RolloutView>>;
  cancelRollout(env: Env, scope: Scope, rolloutId: string): Promise<Result<RolloutView>>;
  /** A new run; `replayed` as above. */
  forkRollout(
    env: Env,
    scope: Scope,
    rolloutId: string,
    request: ForkRequest,
    options: CreateOptions,
  ): Promise<Result<{ run: RunView; replayed: boolean }>>;
  /** Asks the object of a run's trainer; `ask` may be called twice. */
  askTrainer<T>(
    env: Env,
    scope: Scope,
    runId: string,
    ask: (trainer: TrainerRpc) => Promise<Answer<T>>,
  ): Promise<Result<T>>;
  rotateTrainerToken(env: Env, scope: Scope, runId: string, now: number): Promise<Result<TrainerSecrets>>;
  readWeightLedger(env: Env, scope: Scope, runId: string): Promise<Result<WeightLedger>>;
  /** Waits so long for a batch that is not there yet. */
  readManifest(env: Env, scope: Scope, runId: string, step: number, max_wait_s: number): Promise<Result<StoredBytes>>;
  readCredits(env: Env, scope: Scope, runId: string, step: number): Promise<Result<StoredBytes>>;
  /** Every object of a batch, one after another. */
  streamSamples(env: Env, scope: Scope, runId: string, step: number): Promise<Result<StoredBytes>>;
  readSamples(env: Env, scope: Scope, runId: string, query: SampleQuery): Promise<Result<SamplePart>>;
  listEnvironments(env: Env): Promise<EnvironmentView[]>;
  readEnvironment(env: Env, idOrVersioned: string): Promise<Result<EnvironmentView>>;
  createEndpoint(
    env: Env,
    scope: Scope,
    request: EndpointRequest,
    options: CreateOptions,
  ): Promise<Result<Made<EndpointView>>>;
  changeEndpoint(
    env: Env,
    scope: Scope,
    nameOrId: string,
    patch: EndpointPatch,
    now: number,
  ): Promise<Result<EndpointView>>;
  probeEndpoint(env: Env, scope: Scope, nameOrId: string, now: number): Promise<Result<EndpointView>>;
  deleteEndpoint(env: Env, scope: Scope, nameOrId: string, now: number): Promise<Result<{ id: string }>>;
  createSecret(
    env: Env,
    scope: Scope,
    request: SecretRequest,
    options: CreateOptions,
  ): Promise<Result<Made<SecretView>>>;
  changeSecret(env: Env, scope: Scope, nameOrId: string, value: string, now: number): Promise<Result<SecretView>>;
  /** Reads `body` to its end, or to the first row that is refused. `replayed` as above. */
  createDataset(
    env: Env,
    scope: Scope,
    upload: { name: string | null; environment: string | null; environment_args: JsonObject },
    body: ReadableStream<Uint8Array> | null,
    options: { idempotencyKey: string | null; now: number },
  ): Promise<Result<{ dataset: DatasetView; replayed: boolean }>>;
  readDataset(env: Env, scope: Scope, idOrName: string): Promise<Result<DatasetView>>;
  readDatasetRows(
    env: Env,
    scope: Scope,
    idOrName: string,
    page: { after: number | null; limit: number },
  ): Promise<Result<{ lines: string[]; next: number | null }>>;
  deleteDataset(env: Env, scope: Scope, idOrName: string): Promise<Result<{ id: string }>>;
}
