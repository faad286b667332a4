/** Reads of a run while the disk of a local platform is full: its database does not answer, but its object may. */
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { storageTakes } from "../../../src/kernel/kit/storage-faults.ts";
import { readEvents, readRun } from "../../../src/kernel/service/read-run.ts";
import { openPlatform } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const ROOMY: Env = { ...env, LIVE_OBJECT_CEILING: 9 };

/** The state "disk full" applies to the whole process. */
afterEach(async () => {
  expect(await storageTakes(ROOMY)).toBe(true);
});

/** D1 on a full disk: even a read fails, since D1 cannot store its read position. */
function full(): Env {
  const DB = new Proxy(env.DB, {
    get: (database, name) => {
      if (name === "prepare") throw new Error("database or disk is full: SQLITE_FULL");
      return Reflect.get(database, name);
    },
  });
  return { ...ROOMY, DB };
}

async function endedRun() {
  const api = await openPlatform();
  const dataset = questions(2);
  const { id } = await api.start({ environment: "gsm8k", dataset, model: script(RIGHT) });
  await api.ended(id);
  return { scope: api.scope, id };
}

test("on a full disk a run that was read before is answered by its object", async () => {
  const { scope, id } = await endedRun();
  const before = await readRun(ROOMY, scope, id);
  expect(before).toMatchObject({ ok: true, value: { id, status: "completed" } });
  expect(await readRun(full(), scope, id)).toEqual(before);
  expect(await readEvents(full(), scope, id, 0, 0)).toMatchObject({ value: { ended: true } });
});

test("on a full disk a run that was not read before, or belongs to another project, cannot be read", async () => {
  const { scope, id } = await endedRun();
  await expect(readRun(full(), scope, id)).rejects.toThrow("SQLITE_FULL");
  expect((await readRun(ROOMY, scope, id)).ok).toBe(true);
  const other = { ...scope, projectId: "pj_of_another" };
  await expect(readRun(full(), other, id)).rejects.toThrow("SQLITE_FULL");
});

test("a database that fails for another reason is not answered from memory", async () => {
  const { scope, id } = await endedRun();
  expect((await readRun(ROOMY, scope, id)).ok).toBe(true);
  const DB = new Proxy(env.DB, {
    get: () => {
      throw new Error("D1_ERROR: no such table: runs");
    },
  });
  await expect(readRun({ ...ROOMY, DB }, scope, id)).rejects.toThrow("no such table");
});

test("a store whose file is damaged is not treated as a full disk", async () => {
  const store = (message: string): Env => ({
    ...ROOMY,
    STORE: new Proxy(env.STORE, {
      get: () => {
        throw new Error("put: internal error", { cause: new Error(message) });
      },
    }),
  });
  expect(await storageTakes(store("file is not a database: SQLITE_NOTADB"))).toBe(true);
  expect(await storageTakes(store("database disk image is malformed: SQLITE_CORRUPT"))).toBe(true);
  expect(await storageTakes(store("something else"))).toBe(false);
});
