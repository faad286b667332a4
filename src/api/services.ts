/**
 * What the routes ask of the platform behind them. Failures come back as values: an error thrown across an object's
 * boundary would lose its class and code. `now` is epoch milliseconds.
 */
import type {
  EnvironmentView,
  EventName,
  Outcome,
  ResultRow,
  RolloutView,
  RunRequest,
  RunView,
} from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import type { Failure } from "./errors.ts";

export type Result<T> = { ok: true; value: T } | { ok: false; error: Failure };

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
    options: { idempotencyKey: string | null; requestHash: string; now: number },
  ): Promise<Result<{ run: RunView; replayed: boolean }>>;
  readRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
  cancelRun(env: Env, scope: Scope, runId: string): Promise<Result<RunView>>;
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
  readRollout(env: Env, scope: Scope, rolloutId: string): Promise<Result<RolloutView>>;
  listEnvironments(): Promise<EnvironmentView[]>;
  readEnvironment(idOrVersioned: string): Promise<Result<EnvironmentView>>;
}
