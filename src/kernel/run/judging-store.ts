/**
 * Scoring groups that wait for judgements, and the judgements, in a run's own SQLite: reads and single-row writes.
 * Writes that belong together are in judging/scoring-group-state.ts. A scoring group's rows are deleted when it has its scores;
 * their costs are then in the rows of its rollouts.
 */
import { Rows } from "../kit/rows.ts";

export const JUDGING_SCHEMA = [
  // Scoring groups that wait for judgements. `taker`, `attempt`: the message that took the group, and at which try.
  // `unheard`: how often in a row it was sent and not taken.
  `create table if not exists judging (
    unit integer primary key, endpoint_id text not null, calls integer not null, lanes integer not null default 0,
    stage text not null, claim integer not null default 0, losses integer not null default 0, ask_at integer not null,
    taker text, attempt integer not null default 0, unheard integer not null default 0)`,
  "create index if not exists judging_by_endpoint on judging (endpoint_id, stage, ask_at)",
  // Judgements are stored here, by what was asked, until their scoring group has its scores. `unmetered`: replies
  // without usage, whose cost is unknown.
  `create table if not exists verdicts (
    unit integer not null, key text not null, rollout_id text, judge text not null,
    pass integer not null, seed integer, left_out integer not null, cached integer not null default 0,
    tries integer not null default 0, replies integer not null default 0, next_at integer not null default 0, verdict text,
    calls integer not null default 0, prompt_tokens integer not null default 0,
    completion_tokens integer not null default 0, unmetered integer not null default 0,
    primary key (unit, key))`,
];

const RESTART_GRACE_MS = 5000;
/** The reconciliation of scoring looks this often at a scoring group that waits for judgements. */
export const JUDGED_LOOK_MS = 10 * 60_000;

/** `waiting`: to be sent if the lease allows, not before `ask_at`. `sent`: in a queue. `claimed`: a consumer has it. */
export type JudgingStage = "waiting" | "sent" | "claimed";

// Types, not interfaces: SQLite cursors require an index signature.
export type JudgingEntry = {
  unit: number;
  endpoint_id: string;
  /** Judge calls that it still needs, as far as known. */
  calls: number;
  /** How many calls may run at once: the part of the lease that it uses while sent or claimed. */
  lanes: number;
  stage: JudgingStage;
  /** Counts the claims. */
  claim: number;
  /** The message that took it, and at which try; null if it was not taken. */
  taker: string | null;
  attempt: number;
  /** How often in a row it was sent and not taken. */
  unheard: number;
  /** How often in a row it was taken and no result came back. */
  losses: number;
  ask_at: number;
  /** Micro-dollars, in a run with a cap: the bound of its next claim, the reservation of the current claim, */
  needs: number;
  allowance: number;
  /** and what earlier claims spent; lost calls count at their bounds. */
  spent_micros: number;
  lost_calls: number;
  lost_micros: number;
};

export type JudgementEntry = {
  unit: number;
  key: string;
  /** The rollout that pays for it; null = the group. */
  rollout_id: string | null;
  judge: string;
  pass: number;
  seed: number | null;
  left_out: number;
  cached: number;
  /** Failed tries. */
  tries: number;
  /** Failed tries that got a reply which is not a judgement. */
  replies: number;
  next_at: number;
  /** JSON; null until it is settled. */
  verdict: string | null;
  /** The judge's last reply; null if there was none, or it says nothing more than the judgement. */
  reply: string | null;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Part of `prompt_tokens`. */
  cached_tokens: number;
  /** Replies without usage. */
  unmetered: number;
};

export interface EndpointLoad {
  /** The part of the lease used by what is sent or claimed. */
  readonly running: number;
  /** Judge calls needed by scoring groups that may be sent now, and the number of those groups. */
  readonly waiting: number;
  readonly units: number;
  /** Scoring groups that are sent or claimed. */
  readonly under_way: number;
}

export class JudgingStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql);
  }

  scoringGroup(scoringGroup: number): JudgingEntry | null {
    return this.#rows.one<JudgingEntry>("select * from judging where unit = ?", scoringGroup);
  }

  addScoringGroup(scoringGroup: Pick<JudgingEntry, "unit" | "endpoint_id" | "calls" | "ask_at" | "needs">): void {
    this.#rows.insert("judging", { ...scoringGroup, stage: "waiting" });
  }

  setScoringGroup(scoringGroup: number, columns: Partial<JudgingEntry>): void {
    this.#rows.set("judging", { unit: scoringGroup }, columns);
  }

  /** The scoring group no longer waits for a judge. */
  dropScoringGroup(scoringGroup: number): void {
    this.#sql.exec("delete from judging where unit = ?", scoringGroup);
  }

  /**
   * Removes and returns the judgements of this rollout, and those of its group if no other member took them yet. Their
   * order does not depend on which call was answered first.
   */
  takeJudgements(scoringGroup: number, rolloutId: string): JudgementEntry[] {
    const mine = "unit = ? and (rollout_id is null or rollout_id = ?)";
    const taken = this.#rows.all<JudgementEntry>(
      `select * from verdicts where ${mine} order by judge, pass, key`,
      scoringGroup,
      rolloutId,
    );
    this.#sql.exec(`delete from verdicts where ${mine}`, scoringGroup, rolloutId);
    return taken;
  }

  /** Endpoints that scoring groups wait for or hold a lease of. */
  endpoints(): string[] {
    return this.#rows
      .all<{ endpoint_id: string }>("select distinct endpoint_id from judging order by endpoint_id")
      .map(({ endpoint_id }) => endpoint_id);
  }

  load(endpoint_id: string, now: number): EndpointLoad {
    return this.#sql
      .exec<{ running: number; waiting: number; units: number; under_way: number }>(
        `select ifnull(sum(lanes), 0) as running,
          ifnull(sum(case when stage = 'waiting' and ask_at <= ?1 then calls end), 0) as waiting,
          count(case when stage = 'waiting' and ask_at <= ?1 then 1 end) as units,
          count(case when stage != 'waiting' then 1 end) as under_way
        from judging where endpoint_id = ?2`,
        now,
        endpoint_id,
      )
      .one();
  }

  /** Scoring groups that may be sent, oldest first. */
  waiting(endpoint_id: string, now: number, limit: number): JudgingEntry[] {
    return this.#rows.all<JudgingEntry>(
      "select * from judging where endpoint_id = ? and stage = 'waiting' and ask_at <= ? order by ask_at, unit limit ?",
      endpoint_id,
      now,
      limit,
    );
  }

  /** Scoring groups that are sent or claimed, and silent for too long. */
  silent(now: number, limit: number): JudgingEntry[] {
    return this.#rows.all<JudgingEntry>(
      "select * from judging where stage != 'waiting' and ask_at <= ? order by ask_at limit ?",
      now,
      limit,
    );
  }

  /** What the claims of scoring groups that are sent but not taken may cost. */
  neededBySent(): number {
    const sum = "select ifnull(sum(needs), 0) as sum from judging where stage = 'sent'";
    return this.#sql.exec<{ sum: number }>(sum).one().sum;
  }

  /** The same for all scoring groups that are not claimed. */
  neededByUnclaimed(): number {
    const sum = "select ifnull(sum(needs), 0) as sum from judging where stage != 'claimed'";
    return this.#sql.exec<{ sum: number }>(sum).one().sum;
  }

  /** How many scoring groups are sent or claimed, and the least that one of the others needs. */
  waitingForMoney(): { readonly under_way: number; readonly least: number | null } {
    return this.#sql
      .exec<{ under_way: number; least: number | null }>(
        `select count(case when stage != 'waiting' then 1 end) as under_way,
          min(case when stage = 'waiting' then needs end) as least from judging`,
      )
      .one();
  }

  unclaimed(limit: number): JudgingEntry[] {
    return this.#rows.all<JudgingEntry>("select * from judging where stage != 'claimed' limit ?", limit);
  }

  /** When the next one falls silent, or its wait ends; null if neither is awaited. */
  nextAt(now: number): number | null {
    return this.#sql
      .exec<{ at: number | null }>("select min(ask_at) as at from judging where stage != 'waiting' or ask_at > ?", now)
      .one().at;
  }

  /**
   * After a restart, scoring groups that are sent or claimed are sent again soon. Not at once: if only this object was
   * restarted, their consumers are still there, and results that arrive by then are not requested twice. The restart
   * must not count as a loss, so the count that will be added later is subtracted now.
   */
  askAll(now: number): void {
    const soon = now + RESTART_GRACE_MS;
    this.#sql.exec(
      `update judging set ask_at = ?1, losses = losses - (stage = 'claimed'), unheard = unheard - (stage = 'sent')
      where stage != 'waiting' and ask_at > ?1`,
      soon,
    );
  }

  judgements(scoringGroup: number): JudgementEntry[] {
    return this.#rows.all<JudgementEntry>("select * from verdicts where unit = ? order by rowid", scoringGroup);
  }

  judgement(scoringGroup: number, key: string): JudgementEntry | null {
    return this.#rows.one<JudgementEntry>("select * from verdicts where unit = ? and key = ?", scoringGroup, key);
  }

  saveJudgement(entry: JudgementEntry): void {
    this.#rows.insert("verdicts", entry, "replace");
  }
}
