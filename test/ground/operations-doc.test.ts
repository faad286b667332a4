/** Measures the size of D1's rows for docs/operations.md, by filling tables of the deployed schema. */
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { statementsIn } from "../../src/local/migrate.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
const ROWS = 4000;
/** The maximum size of D1. */
const BYTES = 10e9;

type Value = string | number | null;

const text = (length: number) => "x".repeat(length);
/** Like real ids: different, of this length, in the order of creation. */
const id = (kind: string, at: number) => `${kind}_01m${String(at).padStart(31, "0")}`;
const now = 1_795_426_693_466;
/** A tenth of the rows belong to one organisation and its project. */
const scope = (at: number) => ({ org_id: id("org", Math.floor(at / 400)), project_id: id("pj", Math.floor(at / 400)) });

/** A typical row of each table. The run is one of `calculator`: 1,000 rollouts with a report of seven metrics. */
const TYPICAL: Readonly<Record<string, (at: number) => Readonly<Record<string, Value>>>> = {
  runs: (at) => ({
    ...{ id: id("run", at), ...scope(at), kind: "eval", name: null, status: "completed", endpoint_id: id("ep", at) },
    ...{
      environment_id: "calculator",
      environment_version: "1.1.0",
      spec: text(769),
      counts: text(115),
      report: text(1293),
    },
    ...{ idempotency_key: id("key", at), request_hash: text(64), error: null, metadata: "{}", created_at: now + at },
    ...{ finished_at: now + at, stored_bytes: 3_000_000, deleted_at: null, dataset_id: null, dead_letters: 0 },
  }),
  organizations: (at) => ({ id: id("org", at), name: text(20), limits: "{}", created_at: now }),
  projects: (at) => ({ id: id("pj", at), org_id: id("org", at), name: "default", retention: "{}", created_at: now }),
  api_keys: (at) => ({
    ...{
      id: id("key", at),
      org_id: id("org", at),
      project_id: id("pj", at),
      name: text(20),
      hash: `${at}`.padStart(64, "0"),
    },
    ...{
      prefix: "rk_7m2q",
      last4: "x9d4",
      scopes: '["runs:write","rollouts:read"]',
      created_by: id("per", at),
      created_at: now,
      maker_id: id("per", at),
    },
  }),
  people: (at) => ({ id: id("per", at), email: `${at}@example.com`, created_at: now, proven_at: now }),
  members: (at) => ({
    org_id: id("org", at),
    person_id: id("per", at),
    role: "developer",
    name: text(20),
    created_at: now,
  }),
  endpoints: (at) => ({
    ...{
      id: id("ep", at),
      ...scope(at),
      base_url: text(40),
      sealed_key: text(100),
      api_key_last4: "x9d4",
      created_at: now,
    },
    ...{ name: `e${at}`, max_concurrent: 100, rpm: null, prices: text(80), capabilities: text(200), updated_at: now },
  }),
  datasets: (at) => ({
    ...{ id: id("ds", at), ...scope(at), name: `d${at}`, rows: 1000, bytes: 1_000_000, sha256: text(64) },
    ...{ environment: text(150), created_at: now },
  }),
  secrets: (at) => ({
    ...{ id: id("sec", at), ...scope(at), name: `S${at}`, sealed_value: text(100), created_at: now, updated_at: now },
  }),
  idempotency_keys: (at) => ({
    ...{ ...scope(at), operation: "createEndpoint", key: id("key", at), request_hash: text(64) },
    ...{ resource_id: id("ep", at), created_at: now },
  }),
  deletions: (at) => ({
    ...{ id: id("del", at), org_id: id("org", at), project_id: id("pj", at), kind: "run", target_id: id("run", at) },
    ...{ state: "done", counts: text(100), requested_by: id("key", at), created_at: now, finished_at: now },
  }),
  trainer_tokens: (at) => ({
    ...{ hash: `${at}`.padStart(64, "0"), ...scope(at), run_id: id("run", at), created_at: now, expires_at: null },
  }),
  judge_verdicts: (at) => ({ ...scope(at), key: `${at}`.padStart(64, "0"), verdict: text(200), created_at: now }),
};

/** The bytes of the file per row, including its index entries. */
function bytesOfRow(table: string, rowOf: (at: number) => Readonly<Record<string, Value>>): number {
  using database = new DatabaseSync(":memory:");
  for (const file of globSync(join(ROOT, "migrations/*.sql")).sort()) {
    for (const statement of statementsIn(readFileSync(file, "utf8"))) database.exec(statement);
  }
  const bytes = () =>
    Number(
      database.prepare("select page_count * page_size as n from pragma_page_count, pragma_page_size").get()?.["n"],
    );
  const empty = bytes();
  const columns = Object.keys(rowOf(0));
  const insert = database.prepare(`insert into ${table} (${columns.join()}) values (${columns.map(() => "?").join()})`);
  database.exec("begin");
  for (let at = 0; at < ROWS; at++) insert.run(...Object.values(rowOf(at)));
  database.exec("commit");
  return (bytes() - empty) / ROWS;
}

test("the page has the size of each table's rows, within a tenth, and how many make 10 GB", () => {
  for (const [table, rowOf] of Object.entries(TYPICAL)) {
    const [, kilobytes = "", millions = ""] =
      new RegExp(`^\\| \`${table}\` \\| ([\\d.]+) kB \\| ([\\d.]+) million`, "m").exec(PAGE) ?? [];
    const measured = bytesOfRow(table, rowOf);
    expect(Math.abs(Number(kilobytes) * 1000 - measured) / measured, `${table}: ${measured} bytes`).toBeLessThan(0.1);
    expect(Math.abs((Number(millions) * 1e6 * measured) / BYTES - 1), `${table}: how many`).toBeLessThan(0.1);
  }
});
