/**
 * Events of a run that webhooks are told of, kept beside the run's own until they were told: what a kill, a database that
 * is away or a repeat of the run's end takes from the run's events stays here.
 *
 * Invariants. One is written in the transaction of the event itself, under the event's number, and goes when everybody who
 * wants it has it.
 */
import type { JsonObject } from "../../contract/json.ts";
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

/** Called with the run's result. */
const ENDS: readonly string[] = ["run.completed", "run.failed", "run.cancelled"];
/** In one call; what is left goes with the next. */
const AT_ONCE = 100;

type Announcement = { readonly id: number; readonly event: string; readonly data: string; readonly at: number };

export class Announcements {
  readonly #rows: Rows;
  /** Undefined: nobody has looked. */
  #some: boolean | undefined;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** Part of the transaction that it is called in. `at`: epoch milliseconds. */
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

  /** Up to and including this one. */
  drop(id: number): void {
    this.#rows.all("delete from announcements where id <= ?", id);
    this.#some = undefined;
  }

  /** To be called when what was written is taken back, or the storage is freed. */
  forget(): void {
    this.#some = undefined;
  }
}

export class RunTelling {
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

  /** Epoch milliseconds; null while there is nothing to tell. */
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

  /** What it is called and where it is read; of a run that is deleted, what its object knows. */
  async #labels(spec: RunSpec, subrequests: Subrequests): Promise<JsonObject> {
    const { scope, run_id, training, origin } = spec;
    const found = await subrequests.fetch(() => getRun(this.#env.DB, scope, run_id));
    return {
      kind: training === undefined ? "eval" : "training",
      url: origin === undefined ? null : `${origin}${pathOf(spec)}`,
      name: found?.run.name ?? null,
      metadata: found?.run.metadata ?? {},
    };
  }

  /** Its result at its end; nulls where it went on before anybody was told. */
  #outcome(spec: RunSpec, endedAt: number): JsonObject {
    const { settled_at, counts, report } = this.#view(spec);
    if (settled_at !== endedAt) return { counts: null, reward: null };
    const { mean, ci95 } = report.reward;
    return { counts: { ...counts }, reward: { mean, ci95: ci95 && [...ci95] } };
  }
}

/** `more`: of the end of a run, what its receiver would ask for next. */
function eventOf(spec: RunSpec, { id, event, data, at }: Announcement, more: JsonObject): OutboundEvent {
  const { run_id } = spec;
  const told: JsonObject = JSON.parse(data);
  return {
    id: `evt_${run_id.slice(run_id.indexOf("_") + 1)}_${id}`,
    ...{ type: event, at, subject: run_id },
    data: { run_id, ...told, ...more },
    path: pathOf(spec),
  };
}

function pathOf({ run_id }: RunSpec): string {
  return `/v1/runs/${run_id}`;
}
