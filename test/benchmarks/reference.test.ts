/**
 * The reference's scores, computed again from its packages: they are those that are recorded. `RECORD=1` writes them,
 * for changed answers or another version of a package. Without a suitable Python nothing runs, and a line says so.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { cacheFolder, pythonVenv, run, type Venv } from "../python/python-venv.ts";
import { type Benchmark, digestOf, findDifferences, type Recorded, readRecorded, recordedFile } from "./benchmark.ts";
import { BENCHMARKS } from "./benchmarks.ts";

/** It contains the model of sentences of NLTK, which is not a package of its own. */
const WITH_PUNKT = "llama-index-core==0.14.25";
const PUNKT = "llama_index/core/_static/nltk_cache";

let venv: Venv | null = null;
let nltkData = "";

beforeAll(async () => {
  venv = await pythonVenv("benchmarks", join(import.meta.dirname, "requirements.txt"), "ROLLCALL_BENCHMARKS_VENV");
  const folder = join(cacheFolder(), "benchmarks-punkt");
  nltkData = join(folder, PUNKT);
  if (venv === null || existsSync(nltkData)) return;
  mkdirSync(folder, { recursive: true });
  await run(venv.python, ["-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, WITH_PUNKT]);
});

async function computed(python: string, { name, answers }: Benchmark): Promise<Recorded> {
  const child = spawn(python, [join(import.meta.dirname, "reference.py")], {
    env: { ...process.env, NLTK_DATA: nltkData },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(JSON.stringify({ benchmark: name, answers }));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (stdout === "") throw new Error(stderr);
  return { sha256: digestOf(answers), ...JSON.parse(stdout) };
}

test.each(BENCHMARKS)("the recorded scores of $name are those of the reference", async (benchmark) => {
  if (venv === null) return;
  const scores = await computed(venv.python, benchmark);
  if (process.env["RECORD"]) writeFileSync(recordedFile(benchmark.name), `${JSON.stringify(scores, null, 2)}\n`);
  expect(readRecorded(benchmark.name)).toEqual(scores);
  expect(await findDifferences(benchmark, scores)).toEqual([]);
});
