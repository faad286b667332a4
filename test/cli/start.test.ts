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

test("start --once plays the demo, prints a table with standard errors, and leaves nothing running", async () => {
  const directory = newDirectory();
  const { code, stdout } = await rollcall(["start", "--once", "--port", String(testPort(0))], {
    ROLLCALL_DIR: directory,
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/Rollcall +http:\/\/127\.0\.0\.1:\d+/);
  expect(stdout).toMatch(/curl -H "Authorization: Bearer rk_/);
  const rows = stdout.matchAll(/^(\S+) +0\.\d+ ± 0\.\d+ +40 +80 .*scored 80$/gm);
  expect(Array.from(rows, ([, environment]) => environment)).toEqual([
    "calculator",
    "guess-number",
    "grid-walk",
    "reverse-text",
  ]);
  expect(existsSync(join(directory, "platform.lock"))).toBe(false);
  expect(readReadyFile(directory)).toBeNull();
}, 60_000);

test("start refuses a demo on an environment the policy does not know, and names those it does", async () => {
  const { code, stderr } = await rollcall(["start", "--environment", "gsm8k"], {
    ROLLCALL_DIR: newDirectory(),
  });
  expect(code).toBe(2);
  expect(stderr).toContain("calculator, guess-number, grid-walk, reverse-text");
});

test("serve is ready when it says so, and SIGTERM stops it with 0", async () => {
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
}, 60_000);
