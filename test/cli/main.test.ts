import { expect, test } from "vitest";
import { rollcall } from "./run-rollcall.ts";

test.each([[["--help"]], [["eval", "--help"]], [["serve", "--help"]], [["start", "-h"]]])(
  "%j prints how to use it and exits 0",
  async (argv) => {
    const { code, stdout } = await rollcall(argv);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Usage:")]);
  },
);

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

test("a platform elsewhere needs a key in the environment", async () => {
  const { code, stderr } = await rollcall(["eval", "calculator", "--platform", "http://h"], {
    ROLLCALL_API_KEY: "",
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("ROLLCALL_API_KEY must hold a key")]);
});
