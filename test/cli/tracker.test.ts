/** `--track wandb`: the process that sends a run. Its Python side is tested with the real library in python/tests. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { TRACK_FLAGS } from "../../src/cli/run-flags.ts";
import { tracked, trackerOf } from "../../src/cli/tracker.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const SPEC = { name: "eval", help: "", flags: TRACK_FLAGS } as const;
const lineOf = (...argv: readonly string[]) => readCommandLine({ ...SPEC, run: () => Promise.reject() }, argv);
const CONNECTION = { url: "http://platform.test", key: "rk_1", project: "math" };

/** A program in place of Python: it writes its arguments and variables to a file. */
function program(last: string): { readonly python: string; readonly said: () => string } {
  const folder = temporaryDirectory();
  const [python, file] = [join(folder, "python"), join(folder, "said")];
  writeFileSync(python, `#!/bin/sh\necho "$@ $ROLLCALL_URL $ROLLCALL_API_KEY $ROLLCALL_PROJECT" >> ${file}\n${last}\n`);
  chmodSync(python, 0o755);
  return { python, said: () => readFileSync(file, "utf8") };
}

test("without the flag nothing is started", async () => {
  expect(await trackerOf(lineOf())).toBeNull();
  const log = vi.fn();
  expect(await tracked(null, "run_1", CONNECTION, { log }, async () => 7)).toBe(7);
});

test("what is missing is named before anything is spent, with what to install", async () => {
  vi.stubEnv(
    "ROLLCALL_PYTHON",
    program("echo 'error: the library of Weights & Biases is not installed' >&2; exit 2").python,
  );
  const asked = trackerOf(lineOf("--track", "wandb"));
  await expect(asked).rejects.toThrow(/--track: error: the library of Weights & Biases is not installed: install/);
  vi.stubEnv("ROLLCALL_PYTHON", "/no/such/python");
  await expect(trackerOf(lineOf("--track", "wandb"))).rejects.toThrow(/--track: .*ENOENT.*ROLLCALL_PYTHON/);
  await expect(trackerOf(lineOf("--track-project", "p"))).rejects.toThrow("--track-project: needs --track wandb");
});

test("the run is sent with the platform's address and key, and the command waits until it was sent", async () => {
  const { python, said } = program("exit 0");
  vi.stubEnv("ROLLCALL_PYTHON", python);
  const tracker = await trackerOf(lineOf("--track", "wandb", "--track-project", "models"));
  const log = vi.fn();
  expect(await tracked(tracker, "run_1", CONNECTION, { log }, async () => "ended")).toBe("ended");
  expect(said().split("\n").slice(0, 2)).toEqual([
    expect.stringContaining("-m rollcall.track --check"),
    "-m rollcall.track run_1 --project models http://platform.test rk_1 math",
  ]);
  expect(log).not.toHaveBeenCalled();
});

test("if the sending fails, the result stays, and the command that continues is named", async () => {
  const { python } = program("exit 3");
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const tracker = { python, project: undefined };
  expect(await tracked(tracker, "run_1", CONNECTION, { log }, async () => "ended")).toBe("ended");
  expect(lines).toEqual([
    `run_1 was not sent completely: exit code 3. Continue with: ${python} -m rollcall.track run_1`,
  ]);
});

test("if the command is interrupted, the sending ends too", async () => {
  const { python } = program("exec sleep 600");
  const interrupted = tracked(
    { python, project: undefined },
    "run_1",
    CONNECTION,
    { log: () => undefined },
    async () => {
      throw new Error("interrupted");
    },
  );
  await expect(interrupted).rejects.toThrow("interrupted");
});
