/**
 * The part of an organisation's object that grants its runs their shares. It stores one row per run, and notifies runs
 * that would get another grant. The decisions are in lease-state.ts.
 */
import { LIMITS } from "../../contract/limits.ts";
import { accounts } from "../kit/account-hooks.ts";
import { drainingSince } from "../kit/draining.ts";
import { logError } from "../kit/log.ts";
import { isLocal } from "../kit/storage-faults.ts";
import type { AccountLeaseAsk, GrantedLeases } from "../messages/account-wire.ts";
import {
  type AccountLeaseState,
  askLeases,
  dropExpiredRuns,
  grantedRollouts,
  type Leaseholder,
  nextLeaseAlarm,
  noteRunsNotified,
  runsToNotify,
} from "./lease-state.ts";
import { notifyRuns } from "./tell-runs.ts";

/** One row per run, under its id. */
const ROW = "share/";
/** The organisation, its limits, and when they were last read. */
const LIMITS_ROW = "share-limits";

interface KeptLimits {
  readonly org_id: string;
  /** Maximum of concurrent rollouts; null: no limit. */
  readonly rollouts: number | null;
  /** The deployment is draining. */
  readonly upgrading?: boolean;
  readonly read_at: number;
}

/**
 * How many messages an organisation may have in each kind of shared queue at once, judgements included. A deployed
 * queue hands ten of them (six judgements) to each of up to 250 consumers. The local runtime hands over a queue's
 * batches one after another, so each message waits for all earlier ones.
 */
export const MESSAGES_DEPLOYED = 1000;
export const MESSAGES_LOCAL = 6;
/** Twice the number that is worked on at a time, so that the next batch is ready when one is done. */
const JUDGEMENTS_LOCAL = 48;
const LIMITS_KEPT_MS = 5 * 60_000;

export class AccountLeases {
  readonly #ctx: DurableObjectState;
  readonly #env: Env;
  readonly #now: () => number;
  /** How many messages per kind of queue, and how many judged scoring groups; tests replace them. */
  messages: number;
  judgements: number;
  #runs: AccountLeaseState["runs"] | undefined;
  #limits: KeptLimits | null | undefined;

  constructor(ctx: DurableObjectState, env: Env, now: () => number) {
    this.#ctx = ctx;
    this.#env = env;
    this.#now = now;
    this.messages = isLocal(env) ? MESSAGES_LOCAL : MESSAGES_DEPLOYED;
    this.judgements = isLocal(env) ? JUDGEMENTS_LOCAL : MESSAGES_DEPLOYED;
  }

  async ask(asked: AccountLeaseAsk): Promise<GrantedLeases> {
    await this.#readLimits(asked.scope.orgId);
    const { state, grants: grantedLeases } = askLeases(this.#state(), asked, this.#now());
    this.#save(state);
    return grantedLeases;
  }

  /** Reads the limits again and notifies the runs they affect. */
  async changed(): Promise<void> {
    const known = this.#knownLimits();
    if (known === null) return;
    this.#limits = { ...known, read_at: 0 };
    await this.#readLimits(known.org_id);
    this.tend();
  }

  /** How many rollouts the runs may have at once by their leases. */
  granted(): number {
    return grantedRollouts(this.#state());
  }

  /** Removes expired leases and notifies runs. */
  tend(): void {
    this.#save(dropExpiredRuns(this.#state(), this.#now()));
  }

  /** Epoch milliseconds; null if there is nothing to do. */
  nextAt(): number | null {
    return nextLeaseAlarm(this.#state(), this.#now());
  }

  #state(): AccountLeaseState {
    this.#runs ??= Object.fromEntries(
      [...this.#ctx.storage.kv.list<Leaseholder>({ prefix: ROW })].map(([key, run]) => [key.slice(ROW.length), run]),
    );
    const known = this.#knownLimits();
    const upgrading = known?.upgrading ?? false;
    const rollouts = upgrading ? 0 : (known?.rollouts ?? Number.POSITIVE_INFINITY);
    const limits = { rollouts, messages: this.messages, judgements: this.judgements };
    return { limits, upgrading, runs: this.#runs };
  }

  /** Written before the run gets the reply; only changed rows are written. */
  #save(changed: AccountLeaseState): void {
    const now = this.#now();
    const run_ids = runsToNotify(changed, now).slice(0, LIMITS.sliceObjects);
    const { runs } = noteRunsNotified(changed, run_ids, now);
    const before = this.#state().runs;
    const { kv } = this.#ctx.storage;
    for (const run_id of Object.keys(before)) if (runs[run_id] === undefined) kv.delete(ROW + run_id);
    for (const [run_id, run] of Object.entries(runs)) if (before[run_id] !== run) kv.put(ROW + run_id, run);
    this.#runs = runs;
    const org_id = this.#knownLimits()?.org_id;
    if (Object.keys(runs).length === 0) this.#forgetLimits();
    const notified = run_ids.flatMap((run_id) => {
      const run = runs[run_id];
      return run === undefined || org_id === undefined ? [] : [{ run_id, org_id, project_id: run.project_id }];
    });
    if (notified.length > 0) this.#ctx.waitUntil(notifyRuns(this.#env, notified));
  }

  #knownLimits(): KeptLimits | null {
    if (this.#limits === undefined) this.#limits = this.#ctx.storage.kv.get<KeptLimits>(LIMITS_ROW) ?? null;
    return this.#limits;
  }

  #forgetLimits(): void {
    this.#limits = null;
    this.#ctx.storage.kv.delete(LIMITS_ROW);
  }

  /** If limits cannot be read again the known ones stay; without known ones nothing is granted. */
  async #readLimits(org_id: string): Promise<void> {
    const known = this.#knownLimits();
    const now = this.#now();
    // The end of a drain must not be missed: a run that was granted nothing asks again only minutes later.
    if (known !== null && !known.upgrading && now - known.read_at < LIMITS_KEPT_MS) return;
    try {
      const [{ limits }, draining] = await Promise.all([
        accounts().settingsOf(this.#env, org_id),
        drainingSince(this.#env),
      ]);
      const { concurrent_rollouts: rollouts } = limits;
      this.#limits = { org_id, rollouts, upgrading: draining !== null, read_at: now };
      this.#ctx.storage.kv.put(LIMITS_ROW, this.#limits);
    } catch (thrown) {
      if (known === null) throw thrown;
      logError("limits of the organisation", { org_id }, thrown);
    }
  }
}
