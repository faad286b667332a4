import { fork } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { DirectoryInUse } from "../../src/local/directory-lock.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { markOf } from "../../src/local/processes.ts";
import { readReadyFile } from "../../src/local/state-directory.ts";
import { testPort } from "./test-port.ts";

const root = join(import.meta.dirname, "fixture-worker");
const booted: Platform[] = [];
afterEach(async () => {
  for (const platform of booted.splice(0)) await platform.stop();
});

async function boot(directory: string | null, port: number, said: string[] = []) {
  const platform = await bootPlatform({ directory, root, port, log: (line) => said.push(line) });
  booted.push(platform);
  return platform;
}

function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "rollcall-platform-"));
}

async function read(platform: Platform, path: string): Promise<unknown> {
  return (await fetch(platform.url + path)).json();
}

test("a platform answers, has a ready file, keeps its data, and ends when its directory is removed", async () => {
  const directory = newDirectory();
  const first = await boot(directory, testPort(0));
  expect(await read(first, "/count")).toBe(1);
  expect(readReadyFile(directory)).toMatchObject({
    url: first.url,
    key: first.key,
    pid: process.pid,
    workerd_pid: first.workerdPid(),
    policy_url: first.policyUrl,
  });
  expect(statSync(join(directory, "platform.json")).mode & 0o777).toBe(0o600);
  await expect(boot(directory, testPort(0))).rejects.toBeInstanceOf(DirectoryInUse);

  const workerd = first.workerdPid();
  await first.stop();
  expect(markOf(workerd)).toBeNull();
  expect(readReadyFile(directory)).toBeNull();

  const second = await boot(directory, testPort(0));
  expect(await read(second, "/count")).toBe(2);
  expect([second.key, second.policyUrl]).toEqual([first.key, first.policyUrl]);
  await endsWithItsDirectory(second);
});

/** It reports that and stops in an orderly way, and files that another process created there stay. */
async function endsWithItsDirectory(platform: Platform): Promise<void> {
  const { directory } = platform;
  const workerd = platform.workerdPid();
  rmSync(directory, { recursive: true });
  expect((await platform.lost).message).toContain("its state directory was removed");
  expect(existsSync(directory)).toBe(false);
  const others = { "platform.json": "{}", "platform.lock": lockOf(process.ppid) };
  mkdirSync(directory);
  for (const [name, text] of Object.entries(others)) writeFileSync(join(directory, name), text);
  await platform.stop();
  expect(markOf(workerd)).toBeNull();
  const left = readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]);
  expect(Object.fromEntries(left)).toEqual(others);
}

function isSuccess(outcome: unknown): boolean {
  return Object(outcome).success === true;
}

function lockOf(pid: number): string {
  return JSON.stringify({ ...markOf(pid), workerd: null });
}

test("the Worker gets its secret, its quota of objects, a key, a rate limit and a dead-letter queue", async () => {
  const platform = await boot(null, testPort(8));
  expect(await read(platform, "/vars")).toEqual({
    ceiling: expect.any(Number),
    secret: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(await read(platform, "/keys")).toEqual([
    expect.objectContaining({
      org_id: expect.stringMatching(/^org_/),
      project_id: null,
      last4: platform.key.slice(-4),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    }),
  ]);
  let knocks = 0;
  // Three in a minute of the clock, which may end in between.
  while (knocks <= 6 && isSuccess(await read(platform, "/knock?by=one"))) knocks++;
  expect(knocks).toBeGreaterThanOrEqual(3);
  expect(knocks).toBeLessThanOrEqual(6);
  expect(await read(platform, "/knock?by=another")).toEqual({ success: true });
  await fetch(`${platform.url}/note`);
  await expect.poll(() => read(platform, "/notes")).toEqual([{ body: "fails" }]);
  await platform.stop();
  expect(existsSync(platform.directory)).toBe(false);
});

test("a killed workerd is restarted with the same address and state", async () => {
  const directory = newDirectory();
  const said: string[] = [];
  const platform = await boot(directory, testPort(16), said);
  expect(await read(platform, "/count")).toBe(1);
  const killed = platform.workerdPid();
  process.kill(killed, "SIGKILL");
  await expect.poll(() => readReadyFile(directory)?.workerd_pid ?? killed).not.toBe(killed);
  expect(await read(platform, "/count")).toBe(2);
  expect(said.filter((line) => !line.startsWith("Port"))).toEqual([
    `workerd ${killed} died; it is restarted with the same state.`,
    `The platform answers again (workerd ${platform.workerdPid()}).`,
  ]);
});

test("the Worker itself answers at the port: its page, its files, and nothing of Miniflare's", async () => {
  const platform = await bootPlatform({ directory: null, port: testPort(40), atRest: true, log: () => undefined });
  booted.push(platform);
  const page = await (await fetch(platform.url, { headers: { accept: "text/html" } })).text();
  const [, script = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(page) ?? [];
  const file = await fetch(platform.url + script);
  expect([file.status, file.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  expect((await file.text()).length).toBeGreaterThan(1000);
  expect((await fetch(`${platform.url}/assets/none.js`)).status).toBe(404);
  expect((await fetch(`${platform.url}/cdn-cgi/handler/scheduled`)).status).toBe(404);

  // A proxy on this machine ends TLS.
  const headers = {
    authorization: `Bearer ${platform.key}`,
    "x-forwarded-proto": "https",
    "content-type": "application/json",
  };
  const code = await (await fetch(`${platform.url}/v1/sign-in-codes`, { method: "POST", headers, body: "{}" })).json();
  expect(code).toMatchObject({ url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+\/sign-in#code=/) });
});

test("a busy port is replaced by the next free one, which is reported", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(testPort(24), "127.0.0.1", resolve));
  const said: string[] = [];
  const platform = await boot(null, testPort(24), said);
  expect(new URL(platform.url).port).not.toBe(String(testPort(24)));
  expect(said).toEqual([`Port ${testPort(24)} is busy; using ${new URL(platform.url).port}.`]);
  server.close();
});

test("after kill -9 of its owner, the next boot ends the orphan and serves the same data", async () => {
  const directory = newDirectory();
  const child = fork(join(import.meta.dirname, "boot-fixture.ts"), [root, directory, String(testPort(32))]);
  const [{ url, workerd }] = await once(child, "message");
  expect(await (await fetch(`${url}/count`)).json()).toBe(1);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(markOf(workerd)).not.toBeNull();

  const said: string[] = [];
  const platform = await boot(directory, testPort(32), said);
  expect(said).toContain(`Ended workerd ${workerd}, left behind by an earlier run.`);
  expect(markOf(workerd)).toBeNull();
  expect(platform.url).toBe(url);
  expect(await read(platform, "/count")).toBe(2);
});
