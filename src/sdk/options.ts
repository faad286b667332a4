/** The parameters of the client's methods besides request bodies. */

import type { BucketWidth, UsageGroup } from "../billing/wire.ts";
import type { CompareQuery } from "../contract/comparison.ts";
import type { DpoRow, ExportFormat, LeftOutNote, SftRow, VerifiersRow } from "../contract/export.ts";
import type { EntryKind } from "../contract/money.ts";
import type { GroupSort } from "../contract/rollout-list.ts";
import type { RunSort, RunStatus, RunView } from "../contract/run.ts";
import type { DeliveryState } from "../webhooks/wire.ts";

export interface Page<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly first_id: string | null;
  /** The `after` of the next page. */
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** Selects a page of a list. `Place`: the type of the cursor at which a page ended. */
export interface PageQuery<Place = string> {
  /** `last_id` of the previous page, unless the list has another cursor; default: from the start. */
  readonly after?: Place | undefined;
  /** Objects per page: 1 to 100, default 20, unless the list has other limits. */
  readonly limit?: number | undefined;
}

export interface ListQuery extends PageQuery {
  /** By time of creation; default `desc`. */
  readonly order?: "asc" | "desc" | undefined;
}

export interface UsageQuery {
  /** Seconds since the epoch; default: one page before now. */
  readonly start_time?: number | undefined;
  /** Default: now. */
  readonly end_time?: number | undefined;
  /** Default: days. Buckets are whole hours or days of UTC. */
  readonly bucket_width?: BucketWidth | undefined;
  readonly group_by?: readonly UsageGroup[] | undefined;
  /** Only usage with these names. */
  readonly project_id?: string | undefined;
  readonly key_id?: string | undefined;
  readonly environment?: string | undefined;
  readonly model?: string | undefined;
  readonly kind?: "eval" | "training" | "storage" | undefined;
  /** Buckets per page. */
  readonly limit?: number | undefined;
  /** `next_page` of the previous page. */
  readonly page?: number | undefined;
}

/** Newest first. */
export interface DeliveryQuery extends PageQuery {
  readonly state?: DeliveryState | undefined;
}

/** Absent fields do not restrict the list. Newest first. */
export interface AuditLogQuery extends PageQuery {
  /** The key or the person that made the change. */
  readonly who?: string | undefined;
  /** Id of the operation: `cancelRun`. */
  readonly action?: string | undefined;
  /** The id of the changed or created object. */
  readonly target?: string | undefined;
}

/** Absent fields do not restrict the list. Newest first. */
export interface LedgerQuery extends PageQuery {
  readonly kind?: EntryKind | undefined;
  readonly run_id?: string | undefined;
  readonly source_id?: string | undefined;
}

export interface OrganizationQuery {
  /** Its id; default: that of the key. */
  readonly organization?: string | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Maximal wait for an answer, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
}

export interface PostOptions extends CallOptions {
  /** Default: a random one per call. Set your own to repeat a call after your process has restarted. */
  readonly idempotencyKey?: string | undefined;
}

export interface RunQuery extends ListQuery {
  readonly kind?: RunView["kind"] | undefined;
  readonly status?: RunStatus | undefined;
  /** `id`, or `id@version`; version 1 includes 1.0.2. */
  readonly environment?: string | undefined;
  readonly model?: string | undefined;
  /** A part of the id, name, model, environment, or of a pair of metadata as `key=value`. */
  readonly search?: string | undefined;
  /** Metadata pairs that a run must have. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Default: by time of creation. */
  readonly sort?: RunSort | undefined;
}

/** `after`: `next` of the previous page of tasks. */
export interface CompareRunsQuery extends PageQuery {
  /** Id of the run to compare with. */
  readonly baseline: string;
  /** Name of a score; default: the reward. */
  readonly metric?: string | undefined;
  /** Which matched tasks are listed; default `flipped`. */
  readonly tasks?: CompareQuery["tasks"] | undefined;
}

/** `after`: `last_id` of the previous page. */
export interface CompareTasksOfRunsQuery extends Omit<CompareRunsQuery, "baseline"> {
  /** Ids of 1 to 7 runs to compare with. */
  readonly baselines: readonly string[];
}

export interface MetricsQuery {
  /** Steps after this one; default: from the first. */
  readonly after_step?: number | undefined;
  /** Steps per page: 1 to 1,000, default 100. */
  readonly limit?: number | undefined;
}

/** `after`: as in the link to the next page. `limit`: rows per request, 1 to 1,000, default 100. */
export type RowQuery = PageQuery<number>;

/** Rollouts per page: 1 to 500, default 100. */
export interface RolloutListQuery extends PageQuery {
  /** See docs/filter.md; default: all. */
  readonly filter?: string | undefined;
  /** Default `dispatched`; `-reward`: the largest first. */
  readonly sort?: string | undefined;
  /** True: count all matches. */
  readonly matched?: boolean | undefined;
}

/** Groups per page: 1 to 200, default 50. */
export interface GroupListQuery extends PageQuery {
  /** Only groups with a member that matches. */
  readonly filter?: string | undefined;
  readonly sort?: GroupSort | `-${GroupSort}` | undefined;
}

export interface HistogramQuery {
  /** `reward`, `turns`, `calls`, `tokens`, `duration`, or the name of a score; default: the reward. */
  readonly of?: string | undefined;
  /** 1 to 30, default 20. */
  readonly bins?: number | undefined;
  readonly filter?: string | undefined;
  /** For a training run: also by the step that shipped the rollouts. */
  readonly by?: "step" | undefined;
  readonly after_step?: number | undefined;
}

export interface ExportRunQuery<Format extends ExportFormat = ExportFormat> {
  readonly format?: Format | undefined;
  readonly min_reward?: number | undefined;
  readonly best_of_group?: boolean | undefined;
  readonly dedupe?: boolean | undefined;
  /** Rows per request. */
  readonly limit?: number | undefined;
}

export interface ExportOptions extends CallOptions {
  /** Called for each page that left rows out: their number, the reasons, and the first of them. */
  readonly onLeftOut?: ((note: LeftOutNote) => void) | undefined;
}

/** The rows of each format. */
export interface ExportRows {
  readonly sft: SftRow;
  readonly dpo: DpoRow;
  readonly verifiers: VerifiersRow;
}

export interface DatasetOptions extends PostOptions {
  readonly name?: string | undefined;
  /** `id` or `id@version`: every row is checked against its row schema. */
  readonly environment?: string | undefined;
  readonly environmentArgs?: Readonly<Record<string, unknown>> | undefined;
  /** Called for each part of a large file that is stored, also for those of an earlier upload that is continued. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
}

/** In bytes. `total`: null if the size of the file is not known. */
export interface UploadProgress {
  readonly sent: number;
  readonly total: number | null;
}

export interface DatasetUploadQuery extends ListQuery {
  /** In hex: only uploads of this file. */
  readonly sha256?: string | undefined;
}

/** Selects turns of a rollout: those after turn `after`. */
export interface TurnsQuery extends PageQuery<number> {
  /** Turns before this one; without `after`, the last of those. */
  readonly before?: number | undefined;
}

/** Turns after turn `after`: 1 to 5000 per page, default 1000. */
export type OutlineQuery = PageQuery<number>;

/** Selects tokens of a turn. `after`: sampled ids to skip. `limit`: per list, 1 to 10,000, default 2000. */
export interface TokensQuery extends PageQuery<number> {
  /** Number of ids of the prompt's suffix to skip. */
  readonly prompt_after?: number | undefined;
}
