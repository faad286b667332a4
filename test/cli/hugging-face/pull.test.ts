/** The pull itself, without a command: what is cut, resumed, chosen and asked of the server. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { parseAddress } from "../../../src/cli/hugging-face/address.ts";
import { Hub, MAX_ATTEMPTS } from "../../../src/cli/hugging-face/hub.ts";
import { type PullOptions, type PullProgress, pullRows } from "../../../src/cli/hugging-face/pull.ts";
import { findSplit } from "../../../src/cli/hugging-face/split-files.ts";
import { parseColumns } from "../../../src/cli/tables/columns.ts";
import { markOf, type ProcessMark } from "../../../src/local/processes.ts";
import { COMMIT, type FakeHuggingFace, HF_TOKEN, startHuggingFace } from "../../fakes/hugging-face.ts";

const parquet = (name: string) => readFileSync(join(import.meta.dirname, "../../fixtures/tables", name));
/** Three row groups, of 15, 15 and 10 rows. */
const SUMS = parquet("sums.snappy.parquet");
const ID = "example/sums";

let hub: FakeHuggingFace;
const folder = mkdtempSync(join(tmpdir(), "pull-"));
const out = join(folder, "rows.jsonl");
/** The waits before retries, in milliseconds. */
const waits: number[] = [];

beforeAll(async () => {
  hub = await startHuggingFace();
});
afterAll(async () => {
  await hub.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  hub.seen.length = 0;
  waits.length = 0;
  for (const end of ["", ".partial", ".progress", ".lock"]) rmSync(out + end, { force: true });
});

function client(token: string | null = null, signal = new AbortController().signal): Hub {
  const pause = async (ms: number) => {
    waits.push(ms);
  };
  return new Hub({ endpoint: hub.url, token, signal, pause });
}

interface Asked {
  readonly address?: string;
  readonly columns?: readonly string[];
  readonly limit?: number;
  readonly config?: string;
  readonly token?: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: PullOptions["onProgress"];
  readonly log?: PullOptions["log"];
}

async function pull(asked: Asked = {}, to = out) {
  const { address = `hf:${ID}:test`, columns = ["question", "answer"], limit = null, config = null } = asked;
  const server = client(asked.token ?? null, asked.signal);
  const from = await findSplit(server, parseAddress(address), config);
  const { onProgress = () => undefined, log = () => undefined } = asked;
  const rows = await pullRows(server, from, to, { columns: parseColumns(columns), limit, onProgress, log });
  return { from, rows };
}

const written = () =>
  readFileSync(out, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line): unknown => JSON.parse(line));

test("the conversion to Parquet is read by ranges, and only the columns that are needed", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS, parquet("sums.gzip.parquet")] } } });
  const { from, rows } = await pull({ columns: ["question", "tag=answer"] });
  expect(from).toMatchObject({ repository: ID, commit: COMMIT, config: "default", split: "test", partial: false });
  expect(rows).toBe(46);
  expect(written().at(20)).toEqual({ question: "What is 20 + 20?", tag: "20 + 20 = 40.\n#### 40" });
  expect(written().at(-1)).toEqual({ question: "What is 5 + 5?", tag: "5 + 5 = 10.\n#### 10" });
  expect(existsSync(`${out}.partial`) || existsSync(`${out}.progress`)).toBe(false);
});

test("no more is read than --limit needs", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS, SUMS] } } });
  expect((await pull({ limit: 15 })).rows).toBe(15);
  const files = hub.seen.filter((line) => line.includes("/parquet/default/test/1.parquet"));
  expect(files).toEqual([]);
  expect((await pull({ limit: 17 })).rows).toBe(17);
  expect(written()).toHaveLength(17);
});

test("a connection that is cut continues at the byte where it ended, and waits longer while nothing comes", async () => {
  const lines = Array.from({ length: 500 }, (_, at) => JSON.stringify({ question: `q${at}`, answer: `${at}` }));
  hub.datasets.set(ID, { files: { "test.jsonl": `${lines.join("\n")}\n` } });
  // The first request asks for one byte.
  hub.faults.push({ cutAfter: 1 }, { cutAfter: 4000 }, { cutAfter: 0 }, { cutAfter: 0 }, { cutAfter: 3000 });
  expect((await pull()).rows).toBe(500);
  expect(written().map((row) => JSON.stringify(row))).toEqual(lines);
  const ranges = hub.seen.filter((line) => line.startsWith("GET store")).map((line) => /bytes=(\d+)/.exec(line)?.[1]);
  expect(ranges).toEqual(["0", "0", "4000", "4000", "4000", "7000"]);
  expect(waits).toEqual([500, 1000, 2000, 500]);
});

test("a server that stays away ends the command with an error after some attempts", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  hub.faults.push(...Array.from({ length: MAX_ATTEMPTS }, () => ({ status: 503 })));
  await expect(pull()).rejects.toMatchObject({
    failure: { code: "unreachable", message: expect.stringMatching(/does not answer: .*503/) },
  });
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000]);
});

test("429 is tried again after the time that the server asks for, unless it is too long", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  hub.faults.push({ status: 429, retryAfter: "7" });
  expect((await pull()).rows).toBe(40);
  expect(waits).toEqual([7000]);
  hub.faults.push({ status: 429, retryAfter: "3600" });
  await expect(pull()).rejects.toThrow(/429/);
});

test("an interrupted pull continues after the rows that are on disk, also in the middle of a file", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS, SUMS] } } });
  const said: string[] = [];
  for (const stopAt of [15, 40, 55]) {
    const controller = new AbortController();
    const onProgress = ({ rows }: PullProgress) => {
      if (rows >= stopAt) controller.abort();
    };
    const stopped = pull({ signal: controller.signal, onProgress, log: (line) => said.push(line) });
    await expect(stopped).rejects.toThrow();
    expect(existsSync(out)).toBe(false);
    // A kill may leave rows that the progress does not count.
    writeFileSync(`${out}.partial`, '{"question":"half a r', { flag: "a" });
  }
  expect((await pull({ log: (line) => said.push(line) })).rows).toBe(80);
  expect(said).toEqual(["continuing after 15 rows", "continuing after 40 rows", "continuing after 55 rows"]);
  const rows = written();
  expect(rows.slice(0, 40)).toEqual(rows.slice(40));
  expect(rows).toHaveLength(80);
});

test("JSON lines continue in the middle of a file", async () => {
  const lines = Array.from({ length: 30_000 }, (_, at) =>
    JSON.stringify({ question: `q${at}`, answer: "x".repeat(300) }),
  );
  hub.datasets.set(ID, { files: { "test.jsonl": lines.join("\n") } });
  const controller = new AbortController();
  const onProgress = ({ rows }: PullProgress) => {
    if (rows > 0) controller.abort();
  };
  await expect(pull({ signal: controller.signal, onProgress })).rejects.toThrow();
  const before = hub.seen.length;
  expect((await pull()).rows).toBe(30_000);
  expect(written().at(-1)).toEqual({ question: "q29999", answer: "x".repeat(300) });
  const from = hub.seen.slice(before).map((line) => Number(/store bytes=(\d+)/.exec(line)?.[1] ?? 0));
  expect(Math.max(...from)).toBeGreaterThan(4_000_000);
});

test("what another pull left is not continued", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  const controller = new AbortController();
  const stopped = pull({ signal: controller.signal, onProgress: ({ rows }) => rows > 0 && controller.abort() });
  await expect(stopped).rejects.toThrow();
  expect((await pull({ columns: ["question"] })).rows).toBe(40);
  expect(written()[0]).toEqual({ question: "What is 0 + 0?" });
});

test("an output that a running process writes is refused; the lock of a process that ended is taken over", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  const lock = (owner: ProcessMark | null) => writeFileSync(`${out}.lock`, JSON.stringify({ ...owner, workerd: null }));
  lock(markOf(process.ppid));
  await expect(pull()).rejects.toThrow(`process ${process.ppid} writes this file: wait until it ends`);
  expect(existsSync(`${out}.partial`)).toBe(false);
  // Its pid is that of another process now.
  lock({ pid: process.ppid, started: "earlier" });
  expect((await pull()).rows).toBe(40);
  expect(existsSync(`${out}.lock`)).toBe(false);
});

test("a lock of another program is not taken over", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  for (const text of ["", "1234", "{}"]) {
    writeFileSync(`${out}.lock`, text);
    await expect(pull()).rejects.toThrow(
      "rows.jsonl.lock: is not a lock of rollcall: delete it if no other program uses it",
    );
    expect(readFileSync(`${out}.lock`, "utf8")).toBe(text);
  }
});

test("an output in a folder that does not exist is refused with the name of the flag", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  await expect(pull({}, join(out, "none", "rows.jsonl"))).rejects.toMatchObject({ failure: { param: "out" } });
});

test("rows that another program wrote between are never in the output", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  const onProgress = () => writeFileSync(`${out}.partial`, "{}\n", { flag: "a" });
  await expect(pull({ onProgress })).rejects.toThrow(/rows.jsonl.partial: another program wrote to it: delete/);
  expect(existsSync(out) || existsSync(`${out}.lock`)).toBe(false);
});

test("a file that changed between two commands is not mixed", async () => {
  hub.datasets.set(ID, { converted: { default: { test: [SUMS] } } });
  const controller = new AbortController();
  const stopped = pull({ signal: controller.signal, onProgress: ({ rows }) => rows > 0 && controller.abort() });
  await expect(stopped).rejects.toThrow();
  hub.datasets.set(ID, { converted: { default: { test: [parquet("sums.none.parquet")] } } });
  await expect(pull()).rejects.toThrow(/test\/0.parquet: the file changed since the rows before were read: delete/);
});

test("a named revision is read from its own files, as the dataset card has them", async () => {
  const card = [
    {
      config_name: "main",
      data_files: [
        { split: "test", path: "data/test-*" },
        { split: "train", path: ["a.csv", "b.csv"] },
      ],
    },
    { config_name: "socratic", data_files: "data/other.jsonl" },
  ];
  hub.datasets.set(ID, {
    revisions: ["refs/pr/1"],
    cardData: { configs: card },
    converted: { main: { test: [] } },
    files: {
      ...{ "README.md": "# sums", "a.csv": "question,answer\n1,2\n", "b.csv": "question,answer\n3,4\n" },
      ...{ "data/test-0.parquet": SUMS, "data/other.jsonl": '{"question":"o","answer":"p"}' },
    },
  });
  expect((await pull({ address: `hf:${ID}@refs/pr/1:test`, config: "main" })).rows).toBe(40);
  await pull({ address: `hf:${ID}@main:train`, config: "main" });
  expect(written()).toEqual([
    { question: "1", answer: "2" },
    { question: "3", answer: "4" },
  ]);
  expect((await pull({ address: `hf:${ID}@${COMMIT}`, config: "socratic" })).from.split).toBe("train");
  await expect(pull({ address: `hf:${ID}@gone` })).rejects.toThrow(
    /hf:example\/sums@gone: the revision does not exist/,
  );
});

test("without a card and a conversion, the names of the files name the splits", async () => {
  const row = (name: string) => JSON.stringify({ question: name, answer: name });
  hub.datasets.set(ID, {
    files: {
      ...{ "train.jsonl": row("a"), "data/dev-00.jsonl": row("b"), "Test.jsonl": row("c"), "more.jsonl": row("d") },
      ...{ "dataset_infos.json": "{}", ".hidden.json": "{}" },
    },
  });
  expect((await pull({ address: `hf:${ID}:validation` })).rows).toBe(1);
  await pull({ address: `hf:${ID}:train` });
  expect(written()).toEqual([
    { question: "d", answer: "d" },
    { question: "a", answer: "a" },
  ]);
});

test("a split of which only the beginning is converted says so", async () => {
  hub.datasets.set(ID, { converted: { default: { "partial-train": [SUMS] } } });
  expect((await pull({ address: `hf:${ID}:train` })).from.partial).toBe(true);
});

test("the token goes to the hub and never to its store", async () => {
  hub.datasets.set(ID, { private: true, converted: { default: { test: [SUMS] } } });
  hub.storeHeaders.clear();
  expect((await pull({ token: HF_TOKEN })).rows).toBe(40);
  expect([...hub.storeHeaders]).toContain("range");
  expect([...hub.storeHeaders]).not.toContain("authorization");
});

test("an empty file has no rows", async () => {
  hub.datasets.set(ID, { files: { "test.jsonl": "" } });
  expect((await pull()).rows).toBe(0);
});
