/** The storage of an object, copied page by page into an empty one: real objects. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AuditObject } from "../../../src/accounts/audit-object.ts";
import { StorageCopy, type StoragePage } from "../../../src/kernel/kit/storage-copy.ts";
import { inside } from "../platform.ts";

/** Runs inside an object of this name, which is otherwise not used. */
function inStorage<T>(name: string, use: (storage: DurableObjectStorage) => T | Promise<T>): Promise<T> {
  const stub: DurableObjectStub = env.AUDIT.getByName(name);
  return inside(stub, AuditObject, (_, { storage }) => use(storage));
}

function pagesOf(storage: DurableObjectStorage): StoragePage[] {
  const copy = new StorageCopy(storage);
  const pages = [copy.read(null)];
  for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) pages.push(copy.read(next));
  return pages;
}

async function write(storage: DurableObjectStorage, of: string, pages: readonly StoragePage[]): Promise<void> {
  const copy = new StorageCopy(storage);
  for (const [at, { text }] of pages.entries()) {
    expect(await copy.write(of, at === 0, at === pages.length - 1, text)).toBe(true);
  }
}

const TEXT = "x".repeat(10_000);
const VALUES = {
  list: [1, Number.POSITIVE_INFINITY, null],
  $: ["a member of this name"],
  bytes: new Uint8Array([0, 255]).buffer,
};

function fill({ sql, kv }: DurableObjectStorage): void {
  sql.exec("create table numbered (id integer primary key autoincrement, text text, share real, data blob)");
  sql.exec("create table keyed (a text, b integer, text text, primary key (a, b)) without rowid");
  sql.exec("create unique index numbered_text on numbered (text) where text is not null");
  for (let id = 1; id <= 500; id += 1) {
    const data = id === 7 ? new Uint8Array([1, 2, 3]).buffer : null;
    sql.exec("insert into numbered (id, text, share, data) values (?, ?, ?, ?)", id * 3, `${id} ${TEXT}`, id / 7, data);
    sql.exec("insert into keyed values (?, ?, ?)", `${id % 5}`, id, TEXT);
  }
  kv.put("values", VALUES);
  for (let at = 0; at < 500; at += 1) kv.put(`entry/${at}`, { at, text: TEXT });
}

test("an object of several pages is the same in its copy, with its indexes, entries and bytes", async () => {
  const pages = await inStorage("org/copied", (storage) => {
    fill(storage);
    return pagesOf(storage);
  });
  expect(pages.length).toBeGreaterThan(3);
  expect(new Set(pages.map(({ state }) => state)).size).toBe(1);
  await inStorage("org/copy", async (storage) => {
    await write(storage, "a", pages);
    const copy = new StorageCopy(storage);
    expect(copy.isComplete).toBe(true);
    expect(await copy.write("a", true, false, pages[0]?.text ?? "")).toBe(false);
    copy.end();
    expect(pagesOf(storage).map(({ text }) => text)).toEqual(pages.map(({ text }) => text));
    expect(storage.kv.get("values")).toEqual(VALUES);
    await expect(copy.write("b", true, true, "")).rejects.toThrow("the object is not empty");
  });
});

test("a copy that was cut off begins again, and a change shows in the state of the pages", async () => {
  await inStorage("org/cut-off", async (storage) => {
    const copy = new StorageCopy(storage);
    await copy.write("a", true, false, `${JSON.stringify({ key: "old", value: 1 })}\n`);
    expect(copy.isComplete).toBe(false);
    await expect(copy.write("b", false, true, "")).rejects.toThrow("the first page is missing");
    await copy.write("a", true, true, `${JSON.stringify({ key: "new", value: 2 })}\n`);
    copy.end();
    expect([...storage.kv.list()]).toEqual([["new", 2]]);
    const before = copy.read(null).state;
    expect(copy.read(null).state).toBe(before);
    storage.kv.put("new", 3);
    expect(copy.read(null).state).not.toBe(before);
  });
});

test("an object that was never created is one empty page, and stays empty", async () => {
  await inStorage("org/never-created", (storage) => {
    expect(pagesOf(storage)).toMatchObject([{ text: "", next: null }]);
    expect([...storage.kv.list()]).toEqual([]);
  });
});

test("a value that a copy would change is refused", async () => {
  await inStorage("org/with-a-date", (storage) => {
    storage.kv.put("at", new Date(0));
    expect(() => pagesOf(storage)).toThrow("a stored value cannot be copied: it is a [object Date]");
  });
});
