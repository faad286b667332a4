/**
 * Usage per hour (UTC, by the time of posting), by project, payer, environment, model and kind. Kept here until the
 * hour is over and copied to the database.
 *
 * Invariants. An hour has at most `BUCKETS` buckets, plus one per project and kind for everything else. A copy contains
 * the whole hour so far, so it may be written any number of times.
 */
import type { ChargeLines } from "../../contract/money.ts";
import type { Rows } from "../../kernel/kit/rows.ts";
import type { UseCounts } from "../rpc.ts";
import type { UsageHourRow } from "../tables.ts";

const HOUR = 3_600_000;
export const BUCKETS = 1000;
/** The payer, environment and model of the bucket for everything else. */
export const OTHER = "other";

// Types and not interfaces: SQLite rows must be records with string keys.
export type Bucket = {
  readonly project_id: string;
  readonly payer: string;
  readonly environment: string;
  readonly model: string;
  readonly kind: string;
};

type UsageRow = Bucket & { hour: number; counts: string; lines: string; version: number };
type Key = Bucket & { readonly hour: number };

/** A copy to be written, and its version. */
export interface UsageCopy {
  readonly key: Key;
  readonly version: number;
  readonly row: Omit<UsageHourRow, "org_id">;
}

const OF_KEY = "hour = ? and project_id = ? and payer = ? and environment = ? and model = ? and kind = ?";

export class Usage {
  readonly #rows: Rows;
  readonly #buckets: number;

  constructor(rows: Rows, buckets: number = BUCKETS) {
    this.#rows = rows;
    this.#buckets = buckets;
  }

  add(bucket: Bucket, uses: readonly UseCounts[], charges: readonly ChargeLines[], now: number): void {
    if (uses.length === 0) return;
    const key = this.#keyOf({ hour: now - (now % HOUR), ...bucket });
    const before = this.#find(key);
    const counts = JSON.stringify(uses.reduce(plus, JSON.parse(before?.counts ?? "{}")));
    const lines = JSON.stringify(charges.reduce(plus, JSON.parse(before?.lines ?? "{}")));
    if (before === null) {
      this.#rows.insert("usage", { ...key, counts, lines, version: 1, copied: 0, since: now });
      return;
    }
    const version = before.version + 1;
    this.#rows.set(
      "usage",
      key,
      before.copied < before.version ? { counts, lines, version } : { counts, lines, version, since: now },
    );
  }

  /** Changed rows that are not copied yet, the longest waiting first. */
  toCopy(limit: number): UsageCopy[] {
    const query = "select * from usage where version > copied order by since limit ?";
    return this.#rows.all<UsageRow>(query, limit).map(({ counts, lines, version, ...row }) => {
      const { hour, project_id, payer, environment, model, kind } = row;
      const key = { hour, project_id, payer, environment, model, kind };
      const copy = { ...key, hour: hour / 1000, counts: JSON.parse(counts), lines: JSON.parse(lines) };
      return { key, version, row: copy };
    });
  }

  /** Since when the oldest uncopied change has waited. */
  waitsSince(): number | null {
    const query = "select min(since) as since from usage where version > copied";
    return this.#rows.one<{ since: number | null }>(query)?.since ?? null;
  }

  noteCopied(copies: readonly UsageCopy[]): void {
    for (const { key, version } of copies) this.#rows.set("usage", key, { copied: version });
  }

  /** Deletes hours that are over and copied. */
  drop(now: number): void {
    this.#rows.all("delete from usage where hour < ? and version = copied", now - (now % HOUR));
  }

  #keyOf(key: Key): Key {
    if (this.#find(key) !== null) return key;
    const counted = this.#rows.one<{ n: number }>("select count(*) as n from usage where hour = ?", key.hour);
    if ((counted?.n ?? 0) < this.#buckets) return key;
    return { ...key, payer: OTHER, environment: OTHER, model: OTHER };
  }

  #find({ hour, project_id, payer, environment, model, kind }: Key) {
    return this.#rows.one<UsageRow & { copied: number }>(
      `select * from usage where ${OF_KEY}`,
      ...[hour, project_id, payer, environment, model, kind],
    );
  }
}

function plus(sum: Readonly<Record<string, number>>, more: UseCounts | ChargeLines): Readonly<Record<string, number>> {
  const summed = { ...sum };
  for (const [name, n] of Object.entries(more)) if (n !== 0) summed[name] = (summed[name] ?? 0) + n;
  return summed;
}
