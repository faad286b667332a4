import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { expect, test } from "vitest";
import { rollcall } from "./run-rollcall.ts";

test.each([[["--help"]], [["eval", "--help"]], [["serve", "--help"]], [["start", "-h"]]])(
  "%j prints its usage and exits 0",
  async (argv) => {
    const { code, stdout } = await rollcall(argv);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Usage:")]);
  },
);

test("--help has a line for each group of commands, and help all one for each command", async () => {
  const [short, all] = [(await rollcall(["--help"])).stdout, (await rollcall(["help", "all"])).stdout];
  expect(short).toContain("\n  eval        evaluate a model on an environment\n");
  expect(short).toMatch(/\n {2}run {9}list, show, watch, .*, …\n/);
  expect(short).toMatch(/\n {2}deploy {6}make a deployment/);
  expect(short.split("\n").length).toBeLessThan(50);
  expect(Math.max(...short.split("\n").map((line) => line.length))).toBeLessThan(110);
  expect(all).toContain("\n  run list ");
  expect(all.split("\n").length).toBeGreaterThan(100);
  expect((await rollcall([])).stderr).toContain(`rollcall: a command is required\n\n${short}`);
});

test("--version prints the package's version", async () => {
  expect(await rollcall(["--version"])).toMatchObject({ code: 0, stdout: "0.2.0\n" });
});

test.each([[["frobnicate"]], [[]], [["eval", "calculator", "-n", "x"]]])(
  "%j exits 2 and says why on stderr",
  async (argv) => {
    const { code, stdout, stderr } = await rollcall(argv);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^rollcall: /);
  },
);

test("with --json a failure is one object on stdout", async () => {
  const { code, stdout } = await rollcall(["eval", "e", "--json", "-b", "nowhere"]);
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toEqual({
    error: {
      code: "invalid_request",
      message: "--base-url: nowhere is not a URL",
      param: "base-url",
      type: "invalid_request_error",
    },
  });
  expect(stdout.trimEnd().split("\n")).toHaveLength(1);
});

test("a platform that does not answer exits 4", async () => {
  const { code, stdout } = await rollcall(["eval", "calculator", "--json"], {
    ROLLCALL_URL: "http://127.0.0.1:9",
    ROLLCALL_API_KEY: "rk_x",
  });
  expect(code).toBe(4);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: "unreachable" } });
});

test("a server that is not a Rollcall platform is reported as such, and exits 4", async () => {
  const server = createServer((_request, reply) => reply.end("<h1>hello</h1>")).listen(0);
  await once(server, "listening");
  const url = `http://127.0.0.1:${Object(server.address()).port}`;
  const env = { ROLLCALL_URL: url, ROLLCALL_API_KEY: "rk_x" };
  const { code, stdout, stderr } = await rollcall(["run", "list", "--json"], env);
  server.close();
  expect([code, JSON.parse(stdout).error.code]).toEqual([4, "unreadable"]);
  expect(stderr).toMatch(/^rollcall: .*<h1>hello.*is that the address of a Rollcall platform\?\n$/);
});

test("a key that no header can hold is refused without being shown", async () => {
  const env = { ROLLCALL_URL: "http://127.0.0.1:9", ROLLCALL_API_KEY: "rk_one\nrk_two" };
  const { code, stderr } = await rollcall(["run", "list"], env);
  expect([code, stderr]).toEqual([2, expect.stringContaining("ROLLCALL_API_KEY is not a valid key")]);
  expect(stderr).not.toContain("rk_one");
});

test.skipIf(!existsSync("/dev/full"))("output that cannot be written is exit 1", () => {
  const command = `"${process.execPath}" bin/rollcall.mjs --version > /dev/full`;
  const { status, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^rollcall: stdout: ENOSPC/)]);
});

test("a remote platform needs a key in the environment", async () => {
  const { code, stderr } = await rollcall(["eval", "calculator", "--platform", "http://h"], {
    ROLLCALL_API_KEY: "",
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("ROLLCALL_API_KEY must hold a key")]);
});
