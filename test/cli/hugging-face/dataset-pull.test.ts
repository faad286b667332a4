/** `rollcall dataset pull` as a command: its output, its errors, and its rows on a platform. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../../src/local/platform.ts";
import { COMMIT, type FakeHuggingFace, HF_TOKEN, startHuggingFace } from "../../fakes/hugging-face.ts";
import { type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";
import { testPort } from "../../local/test-port.ts";
import { type CommandResult, command } from "../run-rollcall.ts";

const BIN = join(import.meta.dirname, "../../../bin/rollcall.mjs");
const TABLES = join(import.meta.dirname, "../../fixtures/tables");
const SUMS = readFileSync(join(TABLES, "sums.snappy.parquet"));
const folder = mkdtempSync(join(tmpdir(), "dataset-pull-"));
let hub: FakeHuggingFace;
let model: ScriptedModel;
let platform: Platform;

beforeAll(async () => {
  hub = await startHuggingFace();
  hub.datasets.set("example/sums", { converted: { main: { train: [SUMS], test: [SUMS] }, other: { test: [SUMS] } } });
  hub.datasets.set("example/gated", { gated: true, converted: { default: { test: [SUMS] } } });
  model = await startScriptedModel({ reply: () => "\\boxed{0}" });
  platform = await bootPlatform({ directory: null, port: testPort(27), log: () => undefined });
});
afterAll(async () => {
  await platform.stop();
  await Promise.all([hub.stop(), model.stop()]);
  rmSync(folder, { recursive: true });
});

function rollcall(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
  const own = { HF_ENDPOINT: hub.url, HF_TOKEN: "", XDG_CACHE_HOME: join(folder, "cache") };
  return command(argv, {
    env: { ...own, ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: platform.key, ...env },
    cwd: folder,
  });
}

const pull = (...argv: readonly string[]) => rollcall(["dataset", "pull", ...argv]);

test("--out writes the rows to a file and says which revision they are of", async () => {
  const flags = ["--config", "main", "--columns", "question,answer", "--limit", "2", "--out", "rows.jsonl"];
  const { code, stdout } = await pull("hf:example/sums:test", ...flags, "--json");
  expect(JSON.parse(stdout)).toEqual({
    ...{ object: "pulled", dataset: "hf:example/sums", revision: COMMIT, config: "main", split: "test" },
    ...{ rows: 2, file: "rows.jsonl" },
  });
  expect(code).toBe(0);
  expect(readFileSync(join(folder, "rows.jsonl"), "utf8").split("\n")[1]).toBe(
    '{"question":"What is 1 + 1?","answer":"1 + 1 = 2.\\n#### 2"}',
  );
});

test("without --out the rows become a dataset of the platform, checked against an environment", async () => {
  const flags = ["--config", "main", "--columns", "question,answer", "--name", "sums", "--environment", "gsm8k"];
  const { stdout, stderr } = await pull("hf:example/sums:test", ...flags, "--json");
  expect(JSON.parse(stdout), stderr).toMatchObject({
    ...{ object: "dataset", rows: 40, name: "sums", environment: { id: "gsm8k" } },
    pulled: { dataset: "hf:example/sums", revision: COMMIT },
  });
  expect(readdirSync(join(folder, "cache/rollcall/pulled"))).toEqual([]);
});

test("rows that the environment refuses are not stored, and the next command need not pull them again", async () => {
  const argv = ["hf:example/sums:train", "--config", "main", "--columns", "question", "--environment", "gsm8k"];
  const refused = await pull(...argv);
  expect(refused.stderr).toContain("answer");
  expect(refused.code).toBe(2);
  const before = hub.seen.filter((line) => line.includes("store")).length;
  expect((await pull(...argv)).code).toBe(2);
  expect(hub.seen.filter((line) => line.includes("store"))).toHaveLength(before);
});

test.each([
  ["hf:example/none", "hf:example/none: does not exist at http", "or is private: check the name, or set HF_TOKEN"],
  ["hf:example/gated:test", "hf:example/gated: is gated: accept its terms at http", "and set HF_TOKEN to a token"],
  ["hf:example/sums", "hf:example/sums: has several configurations: add --config", "are main, other"],
  ["example/sums", "example/sums: is not hf:OWNER/NAME"],
  ["hf:example/sums:test:2", "is not hf:OWNER/NAME"],
])("%s is refused: %s", async (address, ...parts) => {
  const { code, stderr } = await pull(address, "--out", "x.jsonl");
  for (const part of parts) expect(stderr).toContain(part);
  expect(code).toBe(2);
});

test.each([
  [["--config", "nope"], "has no --config nope; the configurations are main, other"],
  [["--config", "main"], "hf:example/sums, main: has no split dev; the splits are train, test"],
  [["--config", "main", "--limit", "0"], "--limit: must be a whole number of at least 1"],
  [["--config", "main", "--name", "x"], "--name: cannot be combined with --out"],
  [["--config", "main", "--env-args", "a=1"], "--env-args: cannot be combined with --out"],
])("hf:example/sums:dev %j is refused", async (flags, message) => {
  const { code, stderr } = await pull("hf:example/sums:dev", ...flags, "--out", "x.jsonl");
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

test("an unknown column lists those that there are", async () => {
  const flags = ["--config", "main", "--columns", "question=problem", "--out", "x.jsonl"];
  const { code, stderr } = await pull("hf:example/sums:test", ...flags);
  expect(stderr).toMatch(/main\/test\/0.parquet has no column problem; it has question, answer, id, meta, meta.level/);
  expect(code).toBe(2);
});

test("a token that Hugging Face refuses is named, and a good one opens a gated dataset", async () => {
  const argv = ["dataset", "pull", "hf:example/gated:test", "--columns", "question", "--out", "g.jsonl"];
  const bad = await rollcall(argv, { HF_TOKEN: "hf_bad" });
  expect(bad.stderr).toContain("HF_TOKEN: http");
  expect(bad.stderr).toContain("refuses this token");
  expect(bad.stderr).not.toContain("hf_bad");
  expect((await rollcall(argv, { HF_TOKEN })).code).toBe(0);
});

test("a server that is not there is unreachable, and HF_ENDPOINT must be a URL", async () => {
  const argv = ["dataset", "pull", "hf:example/sums:test", "--out", "x.jsonl"];
  const wrong = await rollcall(argv, { HF_ENDPOINT: "huggingface.example" });
  expect(wrong.stderr).toContain("HF_ENDPOINT: huggingface.example is not an http or https URL");
  expect(wrong.code).toBe(2);
});

test("push and --dataset take Parquet and CSV files", async () => {
  writeFileSync(join(folder, "sums.csv"), 'question,answer\n"1, or 2?",1\n3?,3\n');
  const csv = await rollcall(["dataset", "push", "sums.csv", "--environment", "gsm8k", "--json"]);
  expect(JSON.parse(csv.stdout), csv.stderr).toMatchObject({ rows: 2 });
  const parquet = await rollcall(["dataset", "push", join(TABLES, "sums.zstd.parquet"), "--json"]);
  expect(JSON.parse(parquet.stdout), parquet.stderr).toMatchObject({ rows: 6 });
  const none = await rollcall(["dataset", "push", "none.parquet"]);
  expect(none.stderr).toContain("none.parquet: no such file");
  expect(none.code).toBe(2);
});

test.each([1, 5000])("an eval plays a CSV file of %d rows, with the run or as a dataset", async (count) => {
  const rows = Array.from({ length: count }, (_, at) => `What is ${at} + 0? ${"Think. ".repeat(60)},${at}\n`);
  writeFileSync(join(folder, "many.csv"), `question,answer\n${rows.join("")}`);
  const argv = ["eval", "gsm8k", "--dataset", "many.csv", "-m", "m", "-b", model.url, "-n", "1", "--json"];
  const { code, stdout, stderr } = await rollcall(argv);
  expect(JSON.parse(stdout), stderr).toMatchObject({ status: "completed", reward: { mean: 1 } });
  expect(stderr.includes("many.csv is too large to send with a run: uploaded as ds_")).toBe(count > 1);
  expect(code).toBe(0);
});

test("Ctrl-C says how to continue, and the same command continues after the rows that are on disk", async () => {
  const argv = [
    "dataset",
    "pull",
    "hf:example/sums:test",
    "--config",
    "main",
    "--columns",
    "question",
    "-o",
    "c.jsonl",
  ];
  const env = { ...process.env, HF_ENDPOINT: hub.url, HF_TOKEN: "" };
  const child = spawn(process.execPath, [BIN, ...argv], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  // The first byte, the footer and the first row group are answered.
  hub.faults.push(null, null, null, { hangs: () => child.kill("SIGINT") });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  expect(stderr).toContain("interrupted; run the same command again to continue");
  expect(code).toBe(130);
  const again = await rollcall(argv);
  expect(again.stderr).toContain("continuing after 15 rows");
  expect(again.stdout).toMatch(/rows +40\n/);
  const lines = readFileSync(join(folder, "c.jsonl"), "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).question)).toEqual(
    Array.from({ length: 40 }, (_, at) => `What is ${at} + ${at}?`),
  );
});
