/**
 * Events of a run that webhooks are told of, kept beside the run's own until they were told: what a kill, a database that
 * is away or a repeat of the run's end takes from the run's events stays here.
 *
 * Invariants. One is written in the transaction of the event itself, under the event's number, and goes when everybody who
 * wants it has it.
 */
import type { JsonObject } from "../../contract/json.ts";
import type { OutboundEvent } from "../contract/webhook-wire.ts";
import type { RunSpec } from "../contract/wire.ts";
import { idsOf } from "../kit/log.ts";
import { Rows } from "../kit/rows.ts";
import { SingleFlight } from "../kit/single-flight.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { emitEvents } from "../webhook/emit.ts";

export const ANNOUNCEMENTS_SCHEMA = [
  "create table announcements (id integer primary key, event text not null, data text not null, at integer not null)",
];

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
  readonly #now: () => number;
  readonly #calls: SingleFlight;

  constructor(env: Env, announcements: Announcements, now: () => number) {
    this.#env = env;
    this.#announcements = announcements;
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
      await emitEvents(
        this.#env,
        spec.scope,
        rows.map((row) => eventOf(spec, row)),
        subrequests,
      );
      this.#announcements.drop(last.id);
    });
  }
}

function eventOf({ run_id }: RunSpec, { id, event, data, at }: Announcement): OutboundEvent {
  const told: JsonObject = JSON.parse(data);
  return {
    id: `evt_${run_id.slice(run_id.indexOf("_") + 1)}_${id}`,
    ...{ type: event, at, subject: run_id },
    data: { run_id, ...told },
    path: `/v1/runs/${run_id}`,
  };
}
