/**
 * Units that wait for judgements, and the verdicts, in a run's own SQLite: reads and single-row writes. What they mean together
 * stands in judging/unit-state.ts. A unit's rows go when it has its scores; what they cost is then on its rollouts.
 */
import { Rows } from "../kit/rows.ts";

export const JUDGING_SCHEMA = [
  // Units that wait for judgements. `taker`, `attempt`: which message took the unit, and at which try. `unheard`: how often in
  // a row it was sent and taken by none.
  `create table if not exists judging (
    unit integer primary key, endpoint_id text not null, calls integer not null, lanes integer not null default 0,
    stage text not null, claim integer not null default 0, losses integer not null default 0, ask_at integer not null,
    taker text, attempt integer not null default 0, unheard integer not null default 0)`,
  "create index if not exists judging_by_endpoint on judging (endpoint_id, stage, ask_at)",
  // Verdicts stand apart, by what was asked, until their unit has its scores. `unmetered`: replies without usage, of
  // which nobody can know what they cost.
  `create table if not exists verdicts (
    unit integer not null, key text not null, rollout_id text, judge text not null,
    pass integer not null, seed integer, left_out integer not null, cached integer not null default 0,
    tries integer not null default 0, replies integer not null default 0, next_at integer not null default 0, verdict text,
    calls integer not null default 0, prompt_tokens integer not null default 0,
    completion_tokens integer not null default 0, unmetered integer not null default 0,
    primary key (unit, key))`,
];

const RESTART_GRACE_MS = 5000;
/** A unit that waits for judgements is looked at this often by whoever looks for silent scoring. */
export const JUDGED_LOOK_MS = 10 * 60_000;

/** `waiting`: to be sent once its endpoint lets it, and not before `ask_at`. `sent`: on its way. `claimed`: somebody asks. */
export type JudgingStage = "waiting" | "sent" | "claimed";

// Types, not interfaces: SQLite cursors want an index signature.
export type JudgingEntry = {
  unit: number;
  endpoint_id: string;
  /** Calls of judges that it still needs, as far as is known. */
  calls: number;
  /** How many may be asked for at once: permits it holds while sent or claimed. */
  lanes: number;
  stage: JudgingStage;
  /** Counts those who took it. */
  claim: number;
  /** The message that took it, and at which try of it; null where nobody has. */
  taker: string | null;
  attempt: number;
  /** Times in a row that it was sent and nobody took it. */
  unheard: number;
  /** Times in a row that somebody took it and nothing came back. */
  losses: number;
  ask_at: number;
  /** Micro-dollars, in a run with a cap: what its next claim may take at most, what the claim under way was let out, */
  needs: number;
  allowance: number;
  /** and what claims so far took, lost calls at their bounds. */
  spent_micros: number;
  lost_calls: number;
  lost_micros: number;
};

export type VerdictEntry = {
  unit: number;
  key: string;
  /** Whose cost it is; null = the group's. */
  rollout_id: string | null;
  judge: string;
  pass: number;
  seed: number | null;
  left_out: number;
  cached: number;
  /** That failed. */
  tries: number;
  /** Of them, those that were answered, with what is no verdict. */
  replies: number;
  next_at: number;
  /** JSON, once it is settled. */
  verdict: string | null;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Of the prompts'. */
  cached_tokens: number;
  /** Replies without usage. */
  unmetered: number;
};

export interface EndpointLoad {
  /** Permits held by what is sent or claimed. */
  readonly running: number;
  /** Calls of judges that units need which may be sent now, and those units. */
  readonly waiting: number;
  readonly units: number;
  /** Units that are sent or claimed. */
  readonly under_way: number;
}

export class JudgingStore {
  readonly #sql: SqlStorage;
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql);
  }

  unit(unit: number): JudgingEntry | null {
    return this.#rows.one<JudgingEntry>("select * from judging where unit = ?", unit);
  }

  addUnit(unit: Pick<JudgingEntry, "unit" | "endpoint_id" | "calls" | "ask_at" | "needs">): void {
    this.#rows.insert("judging", { ...unit, stage: "waiting" });
  }

  setUnit(unit: number, columns: Partial<JudgingEntry>): void {
    this.#rows.set("judging", { unit }, columns);
  }

  /** It waits for no judge any longer. */
  dropUnit(unit: number): void {
    this.#sql.exec("delete from judging where unit = ?", unit);
  }

  /** Takes out what was asked about this rollout, and about its group where nobody took that yet. */
  takeVerdicts(unit: number, rolloutId: string): VerdictEntry[] {
    const mine = "unit = ? and (rollout_id is null or rollout_id = ?)";
    const taken = this.#rows.all<VerdictEntry>(`select * from verdicts where ${mine} order by rowid`, unit, rolloutId);
    this.#sql.exec(`delete from verdicts where ${mine}`, unit, rolloutId);
    return taken;
  }

  /** Endpoints that units wait for or hold permits of. */
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

  /** Those that may be sent, oldest first. */
  waiting(endpoint_id: string, now: number, limit: number): JudgingEntry[] {
    return this.#rows.all<JudgingEntry>(
      "select * from judging where endpoint_id = ? and stage = 'waiting' and ask_at <= ? order by ask_at, unit limit ?",
      endpoint_id,
      now,
      limit,
    );
  }

  /** Sent or claimed, and not heard of in time. */
  silent(now: number, limit: number): JudgingEntry[] {
    return this.#rows.all<JudgingEntry>(
      "select * from judging where stage != 'waiting' and ask_at <= ? order by ask_at limit ?",
      now,
      limit,
    );
  }

  /** Of units that were sent and that nobody has taken yet: what their claims may take. */
  neededBySent(): number {
    const sum = "select ifnull(sum(needs), 0) as sum from judging where stage = 'sent'";
    return this.#sql.exec<{ sum: number }>(sum).one().sum;
  }

  /** The same of all that nobody has taken. */
  neededByUnclaimed(): number {
    const sum = "select ifnull(sum(needs), 0) as sum from judging where stage != 'claimed'";
    return this.#sql.exec<{ sum: number }>(sum).one().sum;
  }

  /** Units that are sent or claimed, and the least that one of the others needs. */
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

  /** When one falls silent, or its wait is over; null when neither is awaited. */
  nextAt(now: number): number | null {
    return this.#sql
      .exec<{ at: number | null }>("select min(ask_at) as at from judging where stage != 'waiting' or ask_at > ?", now)
      .one().at;
  }

  /**
   * After a restart what is on its way is sent again soon. Not at once: where this object alone was restarted, whoever
   * asks is still there, and what has come back by then is not asked for twice. It was not waited for, so what will be
   * counted is taken off beforehand.
   */
  askAll(now: number): void {
    const soon = now + RESTART_GRACE_MS;
    this.#sql.exec(
      `update judging set ask_at = ?1, losses = losses - (stage = 'claimed'), unheard = unheard - (stage = 'sent')
      where stage != 'waiting' and ask_at > ?1`,
      soon,
    );
  }

  verdicts(unit: number): VerdictEntry[] {
    return this.#rows.all<VerdictEntry>("select * from verdicts where unit = ? order by rowid", unit);
  }

  verdict(unit: number, key: string): VerdictEntry | null {
    return this.#rows.one<VerdictEntry>("select * from verdicts where unit = ? and key = ?", unit, key);
  }

  saveVerdict(entry: VerdictEntry): void {
    this.#rows.insert("verdicts", entry, "replace");
  }
}
