/** Creates links with which anybody can read a run's report, and reads the report for a link. */
import type { Caller } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { sharedPage } from "../contract/pages.ts";
import type { RunReport } from "../contract/report.ts";
import { type Histogram, HistogramQuery } from "../contract/rollout-list.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId, mintToken } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { getRun, runViewOf } from "../kernel/db/runs.ts";
import type { RunRow } from "../kernel/db/schema.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { type CreateOptions, hashedWith, type Made } from "../kernel/kit/idempotency.ts";
import { hashToken, minting, readTokenKind, sha256Hex } from "../kernel/kit/secrets.ts";
import { keyReused, type Result, refuse } from "../kernel/messages/refusal.ts";
import { createInProject } from "../kernel/service/create-in-project.ts";
import { noteProject } from "../kernel/service/note-project.ts";
import { readHistogram } from "../kernel/service/read-histogram.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { findReportLink, findSharedRun, insertReportLink, type NewReportLink, reportLinkViewOf } from "./queries.ts";
import type { CreatedReportLink, ReportLinkRequest, SharedReport } from "./wire.ts";

/** How long a result is cached, however many people read a link. A revoked link also works here for this time. */
const REMEMBERED_MS = 2000;
const REMEMBERED = 100;
const REWARDS = HistogramQuery.parse({});

/** `url` is shown only in this reply. */
export async function createReportLink(
  env: Env,
  { scope, caller, runId }: { readonly scope: Scope; readonly caller: Caller; readonly runId: string },
  { expires_in_s }: ReportLinkRequest,
  given: CreateOptions,
): Promise<Result<Made<CreatedReportLink>>> {
  const { now, origin = "" } = given;
  const mint = minting(env, now, scope.orgId);
  const token = mintToken("rkr", mint);
  const link: NewReportLink = {
    ...{ id: mintId("rl", mint), run_id: runId, hash: sha256Hex(token), created_by: caller.who },
    ...{ created_at: now, expires_at: now + expires_in_s * 1000 },
  };
  const made = await createInProject(env, scope, hashedWith(runId, given), {
    operation: "createReportLink",
    find: (id) => findReportLink(databaseOf(env), scope, id),
    make: async () => ({ ok: true, value: link }),
    insert: (row, key) => insertReportLink(databaseOf(env), scope, row, key),
    refusals: { taken: keyReused, gone: () => whyNone(env, scope, runId) },
  });
  if (!made.ok) return made;
  const { value, replayed } = made.value;
  if (!replayed) await noteProject(env, scope, now);
  const url = replayed ? null : origin + sharedPage(token);
  return { ok: true, value: { value: { ...reportLinkViewOf(value), url }, replayed } };
}

/** The run does not exist, or has the maximum number of links. */
async function whyNone(env: Env, scope: Scope, runId: string): Promise<Result<never>> {
  if ((await getRun(databaseOf(env), scope, runId)) === null) return notFound("run", runId);
  return refuse(
    "conflict",
    `${runId} already has ${LIMITS.reportLinksPerRun} links, the maximum: revoke some first`,
    null,
  );
}

interface Remembered {
  /** Null: the link does not exist or no longer works. */
  readonly report: SharedReport | null;
  /** `ends`: when the link expires; `until`: when the entry must be read again. Epoch milliseconds. */
  readonly ends: number;
  readonly until: number;
}
/** By SHA-256 of the token. */
const remembered = new LruCache<Remembered>(REMEMBERED);

/**
 * The report for the holder of the token. Null if the link does not exist, has ended, or its creator may not share now.
 */
export async function readSharedReport(env: Env, token: string, now: number): Promise<SharedReport | null> {
  if (readTokenKind(env, token) !== "rkr") return null;
  const hashed = hashToken(token);
  const { hash } = hashed;
  const known = remembered.get(hash);
  if (known !== undefined && known.until > now) return known.ends > now ? known.report : null;
  const found = await findSharedRun(databaseOf(env), hashed);
  const isOpen = found !== null && found.expires_at > now && (await isStillGiven(env, found, now));
  const report = isOpen ? await reportOf(env, found) : null;
  remembered.set(hash, { report, ends: found?.expires_at ?? now, until: now + REMEMBERED_MS });
  return report;
}

type SharedRun = NonNullable<Awaited<ReturnType<typeof findSharedRun>>>;

async function isStillGiven(env: Env, { run, created_by }: SharedRun, now: number): Promise<boolean> {
  const scope = { orgId: run.org_id, projectId: run.project_id };
  return (await accounts().whoStillMay(env, scope, created_by, "runs:write", now)) !== null;
}

async function reportOf(env: Env, found: SharedRun): Promise<SharedReport> {
  const { run } = found;
  const histogram = await readHistogram(env, { orgId: run.org_id, projectId: run.project_id }, run.id, REWARDS);
  return sharedReportOf(found, histogram.ok ? histogram.value : null);
}

/** Copied field by field: the other fields of a run are only for its project. */
function sharedReportOf(
  { run, expires_at }: { readonly run: RunRow; readonly expires_at: number },
  histogram: Histogram | null,
): SharedReport {
  const view = runViewOf({ run, endpoint: null, fleet: null });
  const { name, kind, status, environment, model, counts, created_at, finished_at } = view;
  return {
    object: "shared_report",
    ...{ name, kind, status, environment, model, counts, report: withoutMoney(view.report), histogram },
    ...{ created_at, finished_at, expires_at: seconds(expires_at) },
  };
}

/** Removes the prices of endpoints and the platform's charges: they are not for everybody. */
function withoutMoney({ counted_micros: _, lost_reservations: __, usage, ...report }: RunReport): RunReport {
  const { charged_micros: _charged, cost_micros: _cost, judge, lost, ...used } = usage;
  return {
    ...report,
    usage: {
      ...used,
      ...(judge !== undefined && { judge: { ...judge, cost_micros: null } }),
      ...(lost !== undefined && { lost: { ...lost, micros: null } }),
    },
  };
}
