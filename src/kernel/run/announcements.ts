/**
 * Run events for webhooks. They are kept apart from the run's own events until they are delivered, because a kill, an
 * unavailable database or a reopened run may remove the run's own ones.
 *
 * Invariants. An announcement is written in the transaction of its event, under the event's number. It is deleted once
 * it is queued for every webhook that wants it.
 */
import type { JsonObject } from "../../contract/json.ts";
import { databaseOf } from "../db/database.ts";
import { getRun } from "../db/runs.ts";
import { idsOf } from "../kit/log.ts";
import { Rows } from "../kit/rows.ts";
import { SingleFlight } from "../kit/single-flight.ts";
import type { OutboundEvent } from "../kit/slice-hooks.ts";
import { emitEvents, isWanted } from "../kit/slice-hooks.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { LiveView } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";

export const ANNOUNCEMENTS_SCHEMA = [
  "create table announcements (id integer primary key, event text not null, data text not null, at integer not null)",
];

/** Events that carry the run's result. */
const ENDS: readonly string[] = ["run.completed", "run.failed", "run.cancelled"];
/** Events per call; the rest is sent with the next call. */
const AT_ONCE = 100;

type Announcement = { readonly id: number; readonly event: string; readonly data: string; readonly at: number };

export class Announcements {
  readonly #rows: Rows;
  /** Undefined: not read yet. */
  #some: boolean | undefined;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** Part of the caller's transaction. `at`: epoch milliseconds. */
  add(id: number, event: string, data: object, at: number): void {
    this.#rows.insert("announcements", { id, event, data: JSON.stringify(data), at });
    this.#some = true;
  }

  get some(): boolean {
    this.#some ??= this.#rows.one("select 1 from announcements limit 1") !== null;
    return this.#some;
  }

  first(limit: number): Announcement[] {
    return this.#rows.all<Announcement>("select * from announcements order by id limit ?", limit);
  }

  /** Deletes announcements up to and including this one. */
  drop(id: number): void {
    this.#rows.all("delete from announcements where id <= ?", id);
    this.#some = undefined;
  }

  /** Must be called when writes are rolled back, or the storage is freed. */
  forget(): void {
    this.#some = undefined;
  }
}

export class RunNotifier {
  readonly #env: Env;
  readonly #announcements: Announcements;
  readonly #view: (spec: RunSpec) => LiveView;
  readonly #now: () => number;
  readonly #calls: SingleFlight;

  constructor(env: Env, announcements: Announcements, view: (spec: RunSpec) => LiveView, now: () => number) {
    this.#env = env;
    this.#announcements = announcements;
    this.#view = view;
    this.#now = now;
    this.#calls = new SingleFlight("events for webhooks", now);
  }

  /** Epoch milliseconds; null if there is nothing to report. */
  nextAt(): number | null {
    return this.#calls.after(this.#announcements.some ? this.#now() : null);
  }

  async tell(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    if (!this.#announcements.some) return;
    await this.#calls.run(idsOf(spec), async () => {
      const rows = this.#announcements.first(AT_ONCE);
      const last = rows.at(-1);
      if (last === undefined) return;
      await this.#emit(spec, rows, subrequests);
      this.#announcements.drop(last.id);
    });
  }

  async #emit(spec: RunSpec, rows: readonly Announcement[], subrequests: Subrequests): Promise<void> {
    const types = rows.map(({ event }) => event);
    if (!(await isWanted(this.#env, spec.scope, types, subrequests))) return;
    const ends = types.some((type) => ENDS.includes(type));
    const labels = ends ? await this.#labels(spec, subrequests) : {};
    const events = rows.map((row) => {
      const more = ENDS.includes(row.event) ? { ...labels, ...this.#outcome(spec, row.at) } : {};
      return eventOf(spec, row, more);
    });
    await emitEvents(this.#env, spec.scope, events, subrequests);
  }

  /** Name, metadata and address of the run. For a deleted run: only what its object has. */
  async #labels(spec: RunSpec, subrequests: Subrequests): Promise<JsonObject> {
    const { scope, run_id, training, origin } = spec;
    const found = await subrequests.fetch(() => getRun(databaseOf(this.#env), scope, run_id));
    return {
      kind: training === undefined ? "eval" : "training",
      url: origin === undefined ? null : `${origin}${pathOf(spec)}`,
      name: found?.run.name ?? null,
      metadata: found?.run.metadata ?? {},
    };
  }

  /** The run's result at its end; nulls if the run was reopened before this notification. */
  #outcome(spec: RunSpec, endedAt: number): JsonObject {
    const { settled_at, counts, report } = this.#view(spec);
    if (settled_at !== endedAt) return { counts: null, reward: null };
    const { mean, ci95 } = report.reward;
    return { counts: { ...counts }, reward: { mean, ci95: ci95 && [...ci95] } };
  }
}

/** `more`: for the end of a run, the fields that its receiver would request next. */
function eventOf(spec: RunSpec, { id, event, data, at }: Announcement, more: JsonObject): OutboundEvent {
  const { run_id } = spec;
  const fields: JsonObject = JSON.parse(data);
  return {
    id: `evt_${run_id.slice(run_id.indexOf("_") + 1)}_${id}`,
    ...{ type: event, at, subject: run_id },
    data: { run_id, ...fields, ...more },
    path: pathOf(spec),
  };
}

function pathOf({ run_id }: RunSpec): string {
  return `/v1/runs/${run_id}`;
}
