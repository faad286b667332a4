/** An organisation's usage in time buckets: whole hours or days of UTC. */

import { CHARGE_LINES } from "../contract/money.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { type UsageSums, usageBetween } from "./queries/usage-hours.ts";
import {
  BUCKET_WIDTHS,
  type BucketWidth,
  type UsageBucket,
  type UsageGroup,
  type UsageNames,
  type UsagePage,
  type UsageResult,
} from "./wire.ts";

export interface UsageAsk {
  readonly orgId: string;
  /** Null: all projects. */
  readonly projectId: string | null;
  /** Epoch seconds. */
  readonly start: number;
  readonly end: number;
  readonly width: BucketWidth;
  readonly groups: readonly UsageGroup[];
  /** Only usage with these names. */
  readonly only: UsageNames;
  /** The buckets of a page. */
  readonly limit: number;
}

/** The most groups in all buckets of a page. Each takes some 500 characters of the reply. */
const MOST_RESULTS = 10_000;

/** A page starts with the bucket that contains `start`; `next_page` is the start of the next page. */
export async function readUsage(env: Env, ask: UsageAsk): Promise<Result<UsagePage>> {
  const width = BUCKET_WIDTHS[ask.width];
  const from = ask.start - (ask.start % width);
  const end = Math.ceil(ask.end / width) * width;
  if (end <= from) return refuse("invalid_request", "end_time: must be after start_time", "end_time");
  const to = Math.min(end, from + ask.limit * width);
  const { orgId, projectId, groups, only } = ask;
  const query = { projectId, from, to, width, groups, only, limit: MOST_RESULTS + 1 };
  const sums = await usageBetween(databaseOf(env), orgId, query);
  if (sums.length > MOST_RESULTS) {
    const message = `limit: these buckets have over ${MOST_RESULTS} groups in total; request fewer buckets or fewer groups`;
    return refuse("invalid_request", message, "limit");
  }
  const byBucket = Map.groupBy(sums, ({ bucket }) => bucket);
  const data: UsageBucket[] = [];
  for (let at = from; at < to; at += width) {
    const results = (byBucket.get(at) ?? []).map(resultOf);
    data.push({ object: "bucket", start_time: at, end_time: at + width, results });
  }
  const has_more = to < end;
  return { ok: true, value: { object: "page", data, has_more, next_page: has_more ? String(to) : null } };
}

function resultOf({ names, counts, lines }: UsageSums): UsageResult {
  const used = CHARGE_LINES.flatMap((line) => (lines[line] === 0 ? [] : [[line, lines[line]] as const]));
  return {
    object: "usage.result",
    project_id: names.project,
    key_id: names.key,
    environment: names.environment,
    model: names.model,
    kind: names.kind,
    ...counts,
    cost_micros: used.reduce((sum, [, micros]) => sum + micros, 0),
    lines: Object.fromEntries(used),
  };
}
