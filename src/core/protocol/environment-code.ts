/**
 * How the platform calls the code of an environment.
 *
 * Invariants. All that crosses is JSON, except the functions of a host, whose arguments and results are JSON too: so the
 * code may run in this isolate (in-process.ts) or in another one. Nothing is copied in this isolate. One call performs
 * one effect of a rollout. Environment code that fails is answered with its error; a call rejects only if the platform
 * failed. A bundle keeps its own copy of this library, so changes are made as for stored data: fields are only added,
 * and any other change raises `ENVIRONMENT_PROTOCOL`.
 */
import type { SerializedError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { MemberRows } from "../../contract/member-rows.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { PublishedVersion } from "../../contract/published-environment.ts";
import type { EnvironmentView } from "../../contract/run.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import type { Awaitable, FetchOptions, Need, RoutedRow, TaskRow } from "../environments/contract.ts";
import type { Dataset } from "../environments/dataset.ts";
import type { Stage } from "../environments/hook-state.ts";
import type { SqlRunner } from "../environments/rollout-sql.ts";
import type { Event, HookEffect, Rollout, RolloutTask } from "../rollout/rollout.ts";
import type { RowFault } from "../rollout/task.ts";
import type { JudgeResult } from "../rubrics/judges.ts";
import type { AskedScores, ScoringOffer } from "../rubrics/score.ts";
import type { Work } from "../rubrics/work.ts";
import type { StepTimer } from "../step-timer.ts";

export const ENVIRONMENT_PROTOCOL = 1;

/** The code of one version of an environment. */
export interface VersionedEnvironment {
  readonly id: string;
  readonly version: string;
  /** The digest of its code, which a run pins. */
  readonly digest: string;
  readonly code: LoadableEnvironment;
  /** Null: it comes with the deployment. */
  readonly published: PublishedEnvironment | null;
}

/** What is known of a published version without loading its code. */
export interface PublishedEnvironment {
  readonly version: PublishedVersion;
  readonly description: Pick<EnvironmentView, "args" | "dataset" | "row" | "needs" | "judges" | "max_reward">;
}

/** An environment without arguments. */
export interface LoadableEnvironment {
  /** The JSON Schema of its arguments. */
  readonly args: JsonObject;
  /** The needs without arguments. */
  readonly needs: readonly Need[];
  /** What is wrong with the arguments; null if nothing. Patterns and schemas in them are compiled: counted on `work`. */
  checkArguments(args: Readonly<Record<string, unknown>>, work: Work): Promise<ArgumentsFault | null>;
  /** Rejects with the error of the environment's own code. */
  load(args: JsonObject): Promise<EnvironmentCode>;
}

export interface ArgumentsFault {
  readonly kind: "unknown" | "missing" | "invalid";
  readonly path: readonly (string | number)[];
  readonly message: string | null;
}

/** An environment with its arguments. */
export interface EnvironmentCode {
  readonly description: EnvironmentDescription;
  task(source: TaskSource): Promise<TaskReply>;
  /** The tools for the next call of a rollout: for one whose last effect another process performed. */
  tools(rollout: Rollout): Promise<OfferedTools>;
  /** Begins to play a rollout, or continues it. Rejects with RangeError if no environment of the group has the row. */
  play(opening: Opening, host: RolloutHost): Promise<Player>;
  score(group: GroupToScore, host: ScoringHost): Promise<AskedScores>;
  /** Frees what the instance holds, and returns the errors. It must not be used afterwards. */
  tearDown(): Promise<readonly SerializedError[]>;
}

export interface EnvironmentDescription {
  readonly protocol: typeof ENVIRONMENT_PROTOCOL;
  readonly needs: readonly Need[];
  readonly forkable: boolean;
  /** The functions of its rubric, in the order in which they run. `group`: it scores whole groups. */
  readonly scores: readonly { readonly name: string; readonly weight: number; readonly group: boolean }[];
  /** Judges that a run must configure. */
  readonly judges: readonly string[];
  /** Declared replies of judges, by judge; absent in code of an earlier version of this library. */
  readonly judgements?: Readonly<Record<string, readonly string[]>>;
  /** The best possible reward, if it is declared; null or absent if it is not. */
  readonly maxReward?: number | null;
  /** The environments that play its rows: itself, or the members of a group. */
  readonly players: readonly PlayerDescription[];
  readonly dataset: DatasetDescription;
  /** Null: evals play the rows of `dataset`. */
  readonly evalDataset: DatasetDescription | null;
  /** Whether `tearDown` frees something. */
  readonly tearsDown: boolean;
}

export interface PlayerDescription {
  /** Its name, as reports and training series use it; null if it is not in a group. */
  readonly member: string | null;
  /** Defaults, over which the run's own arguments are merged. */
  readonly sampling: Sampling;
  /** 0 or less: no limit. */
  readonly maxTurns: number;
  /** Tokens that a turn keeps; null: all. */
  readonly maxSeqLen: number | null;
  /** Milliseconds that a rollout may take; null: no limit. */
  readonly timeoutMs: number | null;
  /**
   * Which rows of the group's dataset it plays; null if they come with the run or cannot be made. Absent in an
   * environment that is not in a group, and in code of an earlier version of this library.
   */
  readonly rows?: MemberRows | null;
}

export interface DatasetDescription {
  readonly kind: Dataset<unknown>["kind"];
  /** Number of rows; null if it is endless, if rows come with the run, or if they cannot be made. */
  readonly length: number | null;
  /** Why its rows cannot be made; null if they can. */
  readonly fault: string | null;
  /** The JSON Schema of a row, before it is parsed. */
  readonly row: JsonObject;
}

/** The row of a task. `training`: it is a row of `dataset`, else of `evalDataset` if there is one. */
export type TaskSource = { readonly index: number } & (
  | { readonly kind: "own"; readonly training: boolean; readonly seed: number }
  /** It came with the run, and the environment's schema has not parsed it. */
  | { readonly kind: "brought"; readonly training: boolean; readonly row: unknown }
  | { readonly kind: "parsed"; readonly row: TaskRow }
);

export type TaskReply = MadeTask | { readonly fault: RowFault };

export interface MadeTask {
  /** The parsed row. */
  readonly row: TaskRow;
  readonly task: Omit<RolloutTask, "id" | "task_key">;
  /** The member that plays it; null if the environment is not a group. */
  readonly member: string | null;
}

export type OfferedTools = readonly ToolDefinition[] | SerializedError;

export interface Opening {
  readonly rollout_id: string;
  readonly row: RoutedRow;
  /** Made of the run's seed and the rollout's place in the run, so that a repeated run draws the same numbers. */
  readonly seed: number | string;
  readonly secrets: Secrets;
}

/** Values by name. */
export type Secrets = Readonly<Record<string, string>>;

/** Plays one rollout. Between effects it holds only open handles, so it may be dropped at any time. */
export interface Player {
  perform(effect: HookEffect, rollout: Rollout): Promise<Performed>;
  /** Closes the open handles, without ending the rollout. Returns an error instead of rejecting. */
  dispose(): Promise<SerializedError | null>;
}

export interface Performed {
  readonly event: Event;
  /** The tools that the environment offers in the state after the effect; null if it was not asked. */
  readonly tools: OfferedTools | null;
}

/** What the platform does for code while it runs. */
interface Host {
  /** Epoch milliseconds. Another isolate has its own clock. */
  readonly now: () => number;
  readonly fetch: (url: string, options?: FetchOptions) => Promise<Fetched>;
}

export interface RolloutHost extends Host {
  /** Calls on the rollout's own database. */
  readonly sql: SqlRunner;
  /** Called right before a tool runs that must not run twice. */
  readonly unrepeatable: (tool: string) => Awaitable<void>;
  /** `what`: the name of the step in the error. */
  readonly timer: (stage: Stage, what: string) => StepTimer;
}

/** A whole reply. */
export interface Fetched {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
}

export interface GroupToScore {
  /** A rollout, or all members of a group. */
  readonly members: readonly Trajectory[];
  readonly secrets: Secrets;
  /** The judges that may be asked, and their known judgements by key; null: judges are not called. */
  readonly judges: { readonly named: readonly string[]; readonly known: Readonly<Record<string, JudgeResult>> } | null;
}

/** `work` and `pause`: the counted work and the turns of this process. Another isolate has none of it. */
export interface ScoringHost extends Host, Pick<ScoringOffer, "work" | "pause"> {
  /** Another isolate computes it itself. */
  readonly hash: (text: string) => string;
  readonly timer: (what: "scoring" | "cleanup") => StepTimer;
}
