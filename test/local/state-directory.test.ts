import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import {
  apiKeyOf,
  keepPolicyPort,
  makeThrowAwayDirectory,
  policyPort,
  readReadyFile,
  removeReadyFile,
  secretOf,
  stateDirectory,
  writeReadyFile,
} from "../../src/local/state-directory.ts";

const directory = mkdtempSync(join(tmpdir(), "rollcall-state-"));

function mode(name: string): number {
  return statSync(join(directory, name)).mode & 0o777;
}

test("the secret and the key are created once and readable only by their owner", () => {
  const [secret, key] = [secretOf(directory), apiKeyOf(directory)];
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(key).toMatch(/^rk_[0-9a-z]{48}$/);
  expect([secretOf(directory), apiKeyOf(directory)]).toEqual([secret, key]);
  expect([mode("secret"), mode("api-key")]).toEqual([0o600, 0o600]);
});

test("the ready file is read while it exists, and null afterwards", () => {
  const ready = {
    url: "http://127.0.0.1:8787",
    key: "rk_x",
    pid: 1,
    workerd_pid: 2,
    started_at: 3,
    policy_url: null,
  };
  writeReadyFile(directory, ready);
  expect(readReadyFile(directory)).toEqual(ready);
  expect(mode("platform.json")).toBe(0o600);
  removeReadyFile(directory);
  expect(readReadyFile(directory)).toBeNull();
});

test("the policy server's port is stored", () => {
  expect(policyPort(directory)).toBe(0);
  keepPolicyPort(directory, 4321);
  expect(policyPort(directory)).toBe(4321);
});

test("ROLLCALL_DIR sets the directory; the default is .rollcall in the current folder", () => {
  expect(stateDirectory({ ROLLCALL_DIR: "/somewhere" })).toBe("/somewhere");
  expect(stateDirectory({})).toBe(resolve(".rollcall"));
});

test("each temporary directory is a new one", () => {
  const [first, second] = [makeThrowAwayDirectory(), makeThrowAwayDirectory()];
  expect(first).not.toBe(second);
  expect(existsSync(first)).toBe(true);
  for (const made of [first, second]) rmSync(made, { recursive: true });
});
