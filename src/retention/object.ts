/**
 * The object of one project: it runs its deletions and its daily reconciliation, which deletes expired data. The object
 * of a whole organisation deletes the organisation.
 *
 * Invariants. A deletion is in D1 before this object is notified, and its receipt says `done` before the object deletes
 * the job. The alarm works in slices and never throws. An object without a job and without data that can expire has no
 * alarm. An object that was never called writes nothing.
 */

import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { isAtRest, untilTheNextBoot } from "../kernel/kit/at-rest.ts";
import { logError } from "../kernel/kit/log.ts";
import { notifyOfDays } from "../kernel/kit/slice-hooks.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Owner, Serves } from "../kernel/messages/rpc.ts";
import { organizationSlice, projectSlice } from "./delete-owner.ts";
import { runSlice } from "./delete-run.ts";
import { noteDeletion } from "./deletion-queries.ts";
import { expireSlice } from "./expiry.ts";
import type { Outcome, Slice } from "./job-slice.ts";
import { type Counts, FIRST_STEP, type Job, Jobs } from "./jobs.ts";
import type { DeletionOrder, ProjectRpc } from "./rpc.ts";

/** The most jobs in one alarm. */
const JOBS_AT_ONCE = 50;
/** The most calls that one slice makes. */
const LARGEST_SLICE = LIMITS.sliceObjects + 10;
const TRY_AGAIN_MS = 1000;
const LONGEST_TRY_MS = 10 * 60_000;

const DAY_MS = 24 * 3600_000;
const EXPIRE_AGAIN_MS = 3600_000;
/** An isolate notes a project once a day, so data may be created up to a day after the note. */
const NOTED_MS = DAY_MS + 3600_000;
/** When the next reconciliation is due, and when data was last noted. Epoch milliseconds. */
const EXPIRE_AT = "sweep_at";
const NOTED_AT = "noted_at";
/** The last day (UTC) for which storage was posted. */
const STORED_DAY = "stored_day";

export class ProjectObject extends StoredObject implements Serves<ProjectRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  readonly #jobs: Jobs;
  #working = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#jobs = new Jobs(ctx.storage);
  }

  async deleteAll(of: Owner, order: DeletionOrder): Promise<void> {
    this.#create(of);
    this.#jobs.add(order, null, this.now());
    await this.#arm();
  }

  async note(of: Scope): Promise<void> {
    this.#create(of);
    const { kv } = this.ctx.storage;
    kv.put(NOTED_AT, this.now());
    if (kv.get(EXPIRE_AT) === undefined) kv.put(EXPIRE_AT, this.now() + DAY_MS);
    if (kv.get(STORED_DAY) === undefined) kv.put(STORED_DAY, dayOf(this.now()));
    await this.#arm();
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    const owner = this.#owner();
    // The alarm in progress sets the next one.
    if (owner === null || this.#working) return;
    this.#working = true;
    try {
      await this.#alarm(owner);
    } finally {
      this.#working = false;
    }
    await this.#arm();
  }

  async #alarm(owner: Owner): Promise<void> {
    const subrequests = new Subrequests();
    for (const { id } of this.#jobs.due(this.now(), JOBS_AT_ONCE)) {
      if (this.#owner() === null || subrequests.count > LIMITS.subrequests - LARGEST_SLICE) return;
      await this.#work(owner, id, subrequests);
    }
    await this.#expire(owner);
  }

  /** One slice of the daily reconciliation, if it is due. Never throws. */
  async #expire({ orgId, projectId }: Owner): Promise<void> {
    const { kv } = this.ctx.storage;
    const now = this.now();
    if (projectId === null || (kv.get<number>(EXPIRE_AT) ?? Number.POSITIVE_INFINITY) > now) return;
    try {
      const scope = { orgId, projectId };
      const subrequests = new Subrequests();
      const expired = await expireSlice(this.env, scope, this.#jobs, now, subrequests);
      const stores = expired !== "gone" && expired !== "more" && (await this.#notifyOfDays(scope, subrequests));
      // Data may have been created since the last note of an isolate.
      const idle = expired === "idle" && !stores && (kv.get<number>(NOTED_AT) ?? 0) + NOTED_MS < now;
      if (idle || expired === "gone") forgetDays(kv);
      else if (expired !== "more") kv.put(EXPIRE_AT, now + DAY_MS);
      if (expired === "gone" && this.#jobs.nextAt() === null) await this.ctx.storage.deleteAll();
    } catch (thrown) {
      logError("expiry", { org_id: orgId, project_id: projectId }, thrown);
      kv.put(EXPIRE_AT, now + EXPIRE_AGAIN_MS);
    }
  }

  /** Runs the slices' daily hooks for the days since the last one. Returns true if they must run again tomorrow. */
  async #notifyOfDays(scope: Scope, subrequests: Subrequests): Promise<boolean> {
    const { kv } = this.ctx.storage;
    const today = dayOf(this.now());
    const last = kv.get<number>(STORED_DAY) ?? today - 1;
    const more = await notifyOfDays(this.env, scope, { last, today }, subrequests);
    kv.put(STORED_DAY, today);
    return more;
  }

  /** One slice of a job. Never throws. */
  async #work(owner: Owner, id: string, subrequests: Subrequests): Promise<void> {
    const job = this.#jobs.find(id);
    if (job === null) return;
    const slice = { env: this.env, jobs: this.#jobs, subrequests, now: this.now() };
    try {
      await this.#settle(owner, job, await sliceOf(slice, owner, job), subrequests);
    } catch (thrown) {
      logError("deletion", { org_id: owner.orgId, target_id: job.target_id }, thrown);
      this.#jobs.later(id, this.now() + Math.min(LONGEST_TRY_MS, TRY_AGAIN_MS * 2 ** Math.min(job.tries, 20)));
    }
  }

  async #settle(owner: Owner, job: Job, outcome: Outcome, subrequests: Subrequests): Promise<void> {
    const now = this.now();
    switch (outcome.kind) {
      case "wait":
        if (job.step === FIRST_STEP) await this.#noteProgress(owner, job, job.counts, subrequests);
        this.#jobs.later(job.id, outcome.until);
        return;
      case "go": {
        this.#jobs.save(job.id, outcome.progress, now);
        await this.#noteProgress(owner, job, outcome.progress.counts, subrequests);
        return;
      }
      case "end": {
        const { counts } = outcome;
        const done = { state: "done", counts, finished_at: now } as const;
        // Stored before the job is deleted: after a kill in between, the last step is repeated.
        if (job.parent === null) await subrequests.fetch(() => this.#note(owner, job, done));
        if (job.kind === "run") this.#jobs.end({ ...job, counts }, now);
        // The project or organisation of this object no longer exists.
        else await this.ctx.storage.deleteAll();
      }
    }
  }

  /** Sets the deletion to `running` from its first slice on. A child job has no deletion. */
  async #noteProgress(owner: Owner, job: Job, counts: Counts, subrequests: Subrequests): Promise<void> {
    if (job.parent !== null) return;
    await subrequests.fetch(() => this.#note(owner, job, { state: "running", counts, finished_at: null }));
  }

  #note(owner: Owner, { id }: Job, changes: Parameters<typeof noteDeletion>[3]): Promise<void> {
    return noteDeletion(databaseOf(this.env), owner.orgId, id, changes);
  }

  #create(of: Owner): void {
    if (this.#owner() !== null) return;
    this.#jobs.create();
    this.ctx.storage.kv.put("owner", of);
  }

  /** Null for an object that was never called. */
  #owner(): Owner | null {
    return this.ctx.storage.kv.get<Owner>("owner") ?? null;
  }

  async #arm(): Promise<void> {
    const { storage } = this.ctx;
    const jobsAt = this.#owner() === null ? null : this.#jobs.nextAt();
    const due = [jobsAt, storage.kv.get<number>(EXPIRE_AT) ?? null].filter((at) => at !== null);
    if (due.length === 0) await storage.deleteAlarm();
    else await storage.setAlarm(Math.max(this.now(), Math.min(...due)));
  }
}

/** The number of the day (UTC) of a time in epoch milliseconds. */
function dayOf(now: number): number {
  return Math.floor(now / DAY_MS);
}

/** Nothing is due here. Days without stored data are not posted later. */
function forgetDays(kv: SyncKvStorage): void {
  kv.delete(EXPIRE_AT);
  kv.delete(STORED_DAY);
}

function sliceOf(slice: Slice, { orgId, projectId }: Owner, job: Job): Promise<Outcome> {
  if (projectId === null) return organizationSlice(slice, orgId, job);
  const scope = { orgId, projectId };
  return job.kind === "project" ? projectSlice(slice, scope, job) : runSlice(slice, scope, job);
}
