import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { makeThrowAwayDirectory, readReadyFile } from "../../src/local/state-directory.ts";
import { testPort } from "../local/test-port.ts";
import { rollcall } from "./run-rollcall.ts";

const made: string[] = [];
afterEach(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = makeThrowAwayDirectory();
  made.push(directory);
  return directory;
}

test("start --once trains the demo, prints before and after with their intervals, and leaves nothing running", async () => {
  const directory = newDirectory();
  const short = ["--max-steps", "2", "--eval-examples", "16"];
  const argv = ["start", "--once", ...short, "--port", String(testPort(0))];
  const { code, stdout, stderr } = await rollcall(argv, { ROLLCALL_DIR: directory });
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/Rollcall +http:\/\/127\.0\.0\.1:\d+/);
  expect(stdout).toMatch(/curl -H "Authorization: Bearer rk_/);
  const evals = stdout.matchAll(/^(before|after) +\d\.\d+ ± 0\.\d+ \(95 %: .*\), 16 tasks(?:; best possible 1\.1)?$/gm);
  expect(Array.from(evals, ([, when]) => when)).toEqual(["before", "after"]);
  expect(stdout).toMatch(/\n2 steps, policy v2, .*\nrollouts: scored \d+\nrun run_/);
  expect(stderr).toMatch(/\ncalculator {2}step 2\/2 · /);
  expect(existsSync(join(directory, "platform.lock"))).toBe(false);
  expect(readReadyFile(directory)).toBeNull();

  const [, run] = /\nrun (run_\w+)/.exec(stdout) ?? [];
  const second = await rollcall(argv, { ROLLCALL_DIR: directory });
  expect([second.code, second.stderr]).toEqual([0, ""]);
  expect(second.stdout).toContain(`Trained   calculator before, in ${run}: npm start -- --again trains anew\n`);
  expect(second.stdout).toMatch(/Policy {4}http:\/\/127\.0\.0\.1:\d+\/v1 serves version 2 of it\n$/);

  const again = await rollcall([...argv, "--again", "--max-steps", "1"], { ROLLCALL_DIR: directory });
  expect(again.stdout).toMatch(/\n1 steps, policy v1, .*\nrollouts: scored \d+\nrun run_/);
});

test("serve is ready when it says so, and exits 0 after SIGTERM", async () => {
  const directory = newDirectory();
  const ready: unknown[] = [];
  const served = rollcall(
    ["serve", "--json", "--port", String(testPort(8))],
    { ROLLCALL_DIR: directory },
    (said, kill) => {
      if (!said.includes("Try ") || ready.length > 0) return;
      ready.push(readReadyFile(directory));
      kill("SIGTERM");
    },
  );
  const { code, stdout } = await served;
  expect(code).toBe(0);
  const { url, key } = JSON.parse(stdout);
  expect(ready).toEqual([expect.objectContaining({ url, key })]);
  expect(readReadyFile(directory)).toBeNull();
});
