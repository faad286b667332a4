/**
 * Release 0.2.0 did not declare the class of the databases of rollouts in its wrangler.toml. A database that it began
 * has its rows, and can be deleted, once the class is declared.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";

/** An object that plays nothing, and has the database of the rollout 0/0/0. */
const WORKER = `
import { DurableObject } from "cloudflare:workers";
import { dropDatabase, sqlOf } from "./src/kernel/rollout/sql-object.ts";
export { RolloutSqlObject } from "./src/kernel/rollout/sql-object.ts";

const ROLLOUT = { group: 0, slot: 0, attempt: 0, scope: { orgId: "org_1", projectId: "prj_1" } };

export class HostObject extends DurableObject {
  async exec(writes, query) {
    const store = { writes: () => writes, noteSql() {} };
    return await sqlOf(this.ctx, this.env, ROLLOUT, store, { excuse() {} }).exec({ effect: "test", call: 0 }, query, []);
  }
  async end(how) {
    if (how === "over") dropDatabase(this.ctx, ROLLOUT);
    else await this.ctx.storage.deleteAll();
  }
}

export default {
  async fetch(request, { HOST }) {
    const { method, args } = await request.json();
    return Response.json((await HOST.getByName("host")[method](...args)) ?? null);
  },
};
`;

let folder: string;
let bundle: string;
let platform: Miniflare | undefined;
let writes = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-declared-"));
  bundle = join(folder, "worker.js");
  await build({
    stdin: { contents: WORKER, resolveDir: PACKAGE_ROOT, loader: "ts" },
    ...{ bundle: true, format: "esm", outfile: bundle, external: ["cloudflare:workers", "node:*"] },
  });
});
afterEach(async () => await platform?.dispose());
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts workerd on the folder `store`; a call of a method of the one object. */
async function boot(store: string, { declared }: { readonly declared: boolean }) {
  await platform?.dispose();
  platform = new Miniflare(
    convertV4MiniflareOptions({
      modules: [{ type: "ESModule", path: bundle }],
      modulesRoot: folder,
      ...{ compatibilityDate: "2026-09-01", compatibilityFlags: ["nodejs_compat"], cf: false },
      durableObjects: {
        HOST: { className: "HostObject", useSQLite: true },
        ...(declared && { ROLLOUT_SQL: { className: "RolloutSqlObject", useSQLite: true } }),
      },
      resourcePersistencePath: store,
      log: new Log(LogLevel.NONE),
    }),
  );
  const { dispatchFetch } = platform;
  const call = async (method: string, ...args: readonly unknown[]): Promise<unknown> => {
    const reply = await dispatchFetch("http://host/", { method: "POST", body: JSON.stringify({ method, args }) });
    return await reply.json();
  };
  const exec = (query: string) => {
    writes += 1;
    return call("exec", writes, query);
  };
  return { call, exec };
}

/** The databases of objects and facets, by file. */
function databasesIn(store: string): string[] {
  const files = readdirSync(join(store, "do"), { recursive: true, encoding: "utf8" });
  return files.filter((file) => /\.sqlite$/.test(file) && !file.endsWith("metadata.sqlite")).sort();
}

test("rows that were written before the class was declared are there afterwards", async () => {
  const store = join(folder, "rows");
  const before = await boot(store, { declared: false });
  expect(await before.exec("create table facts(x); insert into facts values (1), ('two')")).toEqual([]);
  const files = databasesIn(store);
  expect(files).toHaveLength(2);
  const after = await boot(store, { declared: true });
  expect(await after.exec("select x from facts order by rowid")).toEqual([{ x: 1 }, { x: "two" }]);
  expect(await after.exec("insert into facts values (3) returning x")).toEqual([{ x: 3 }]);
  expect(databasesIn(store)).toEqual(files);
});

test.each(["over", "deleted"])("such a database is deleted when its rollout is %s", async (how) => {
  const store = join(folder, how);
  const before = await boot(store, { declared: false });
  await before.exec("create table facts(x)");
  const after = await boot(store, { declared: true });
  await after.call("end", how);
  expect(await after.exec("select name from sqlite_master")).toEqual([]);
});
