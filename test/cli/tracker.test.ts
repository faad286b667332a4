/** `--track wandb`: the process that sends a run. Its Python side is tested with the real library in python/tests. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { TRACK_FLAGS } from "../../src/cli/run-flags.ts";
import { type Following, tracked, trackerOf } from "../../src/cli/tracker.ts";
import { WAIT } from "../hang-limits.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const SPEC = { name: "eval", help: "", flags: TRACK_FLAGS } as const;
const lineOf = (...argv: readonly string[]) => readCommandLine({ ...SPEC, run: () => Promise.reject() }, argv);
const CONNECTION = {
  url: "http://platform.test",
  key: "rk_1",
  project: "math",
  kind: "remote",
  flags: " --platform http://platform.test",
  environment: null,
} as const;
const COMMAND = "npx rollcall eval --track wandb";
const GO_ON = `Continue with: ${COMMAND} --resume run_1 --platform http://platform.test -- sh play.sh`;

/** Lines of stderr are added to `lines`. */
function following(lines: string[], more: Partial<Following> = {}): Following {
  const { signal } = new AbortController();
  return { log: (line) => lines.push(line), signal, command: COMMAND, program: " -- sh play.sh", ...more };
}

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
  expect(await tracked(null, "run_1", CONNECTION, following([]), async () => 7)).toBe(7);
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
  const lines: string[] = [];
  expect(await tracked(tracker, "run_1", CONNECTION, following(lines), async () => "ended")).toBe("ended");
  expect(said().split("\n").slice(0, 2)).toEqual([
    expect.stringContaining("-m rollcall.track --check"),
    "-m rollcall.track run_1 --project models http://platform.test rk_1 math",
  ]);
  expect(lines).toEqual([]);
});

test("if the sending fails, the result stays, and the command that continues is named", async () => {
  const { python } = program("exit 3");
  const lines: string[] = [];
  const tracker = { python, project: undefined };
  expect(await tracked(tracker, "run_1", CONNECTION, following(lines), async () => "ended")).toBe("ended");
  expect(lines).toEqual([`run_1 was not sent completely: exit code 3. ${GO_ON}`]);
  const temporary = { ...CONNECTION, kind: "ephemeral" } as const;
  await tracked(tracker, "run_1", temporary, following(lines), async () => "ended");
  expect(lines[1]).toBe("run_1 was not sent completely: exit code 3");
});

test("what the process prints are lines of the command, so that a picture is drawn below them", async () => {
  const { python } = program("printf 'logged in\\r\\nsent ' ; echo on stderr >&2; printf 'to W&B'");
  const lines: string[] = [];
  await tracked({ python, project: undefined }, "run_1", CONNECTION, following(lines), async () => "ended");
  expect(lines.toSorted()).toEqual(["logged in", "on stderr", "sent to W&B"]);
});

test("the steps of a progress bar are lines, and a long line is logged in parts", async () => {
  const { python } = program("printf '10%%\\r20%%\\r'; head -c 20000 /dev/zero | tr '\\0' x; printf '\\r'");
  const lines: string[] = [];
  await tracked({ python, project: undefined }, "run_1", CONNECTION, following(lines), async () => "ended");
  expect(lines.slice(0, 2)).toEqual(["10%", "20%"]);
  expect(lines.slice(2).map((line) => line.length)).toEqual([8192, 8192, 20_000 - 2 * 8192]);
});

/** It begins a process that holds its pipes and does not stop by Ctrl-C. Returns how to end that process. */
function withService(then: string) {
  const { python } = program(`sleep 600 & echo $! > "$0.service"; ${then}`);
  const file = `${python}.service`;
  const pid = () => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
  return { python, began: () => pid() > 0, end: () => process.kill(pid()) };
}

test("a process that the sending began and left does not hold up the command", async () => {
  const { python, end } = withService("echo sent");
  const lines: string[] = [];
  expect(await tracked({ python, project: undefined }, "run_1", CONNECTION, following(lines), async () => 7)).toBe(7);
  end();
  expect(lines).toEqual(["sent"]);
});

test("a sending that is stopped is not awaited longer because of a process that it began", async () => {
  const { python, began, end } = withService("exec sleep 600");
  const lines: string[] = [];
  const interrupted = tracked({ python, project: undefined }, "run_1", CONNECTION, following(lines), async () => {
    await vi.waitUntil(began, WAIT);
    throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
  end();
  expect(lines).toEqual([expect.stringContaining("its tracker was stopped, ended by SIGINT")]);
});

test("Ctrl-C or --timeout stops a sending that does not end, and the result stays", async () => {
  const { python } = program("exec sleep 600");
  const lines: string[] = [];
  const ended = async () => "ended";
  const around = following(lines, { signal: AbortSignal.abort() });
  expect(await tracked({ python, project: undefined }, "run_1", CONNECTION, around, ended)).toBe("ended");
  expect(lines).toEqual([`run_1 was not sent completely: its tracker was stopped, ended by SIGINT. ${GO_ON}`]);
});

test("a sending that does not stop is killed", async () => {
  const { python } = program('trap "" INT; : > "$0.ready"; exec sleep 600');
  const lines: string[] = [];
  const controller = new AbortController();
  const follow = async () => {
    await vi.waitUntil(() => existsSync(`${python}.ready`), WAIT);
    controller.abort();
    return "ended";
  };
  const around = following(lines, { signal: controller.signal, stopsWithinMs: 1 });
  expect(await tracked({ python, project: undefined }, "run_1", CONNECTION, around, follow)).toBe("ended");
  expect(lines).toEqual([expect.stringContaining("its tracker was stopped, ended by SIGKILL. Continue with: ")]);
});

test("if the command is interrupted, the sending ends too", async () => {
  const { python } = program("exec sleep 600");
  const lines: string[] = [];
  const interrupted = tracked({ python, project: undefined }, "run_1", CONNECTION, following(lines), async () => {
    throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
  expect(lines).toEqual([expect.stringContaining("its tracker was stopped, ended by SIGINT")]);
});
