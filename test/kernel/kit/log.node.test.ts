import { DrizzleQueryError } from "drizzle-orm";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { idsOf, logError } from "../../../src/kernel/kit/log.ts";

const lines: string[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.spyOn(console, "error").mockImplementation((line: string) => {
    lines.push(line);
  });
});
afterEach(() => vi.restoreAllMocks());

function written(): Record<string, unknown> & { error: { name: string; message: string; stack: string[] } } {
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? "");
}

it("writes one line of JSON with the ids under their own names and the error separately", () => {
  const scope = { orgId: "org_1", projectId: "prj_1" };
  logError(
    "message failed",
    { ...idsOf({ scope, run_id: "run_1", rollout_id: "ro_1" }), attempt: 2 },
    new TypeError("no"),
  );
  const { time, error, ...rest } = written();
  expect(Date.parse(String(time))).toBeGreaterThan(0);
  expect(rest).toEqual({
    ...{ level: "error", message: "message failed" },
    ...{ org_id: "org_1", project_id: "prj_1", run_id: "run_1", rollout_id: "ro_1", attempt: 2 },
  });
  expect(error).toMatchObject({ name: "TypeError", message: 'TypeError("no")' });
  expect(error.stack[0]).toMatch(/^at .*log\.node\.test/);
  expect(error.stack.length).toBeLessThanOrEqual(8);
});

it("takes from a spec only what a line may have", () => {
  const spec = { run_id: "run_1", endpoint_id: "ep_1", row: { prompt: "a text of a user" } };
  expect(idsOf(spec)).toEqual({ run_id: "run_1", endpoint_id: "ep_1" });
});

it("leaves out the parameters of a failed statement, tokens and credentials", () => {
  const statement = new DrizzleQueryError(
    'select "a" from "b"',
    ["sealed.value", 'he said "hello"'],
    new Error("locked"),
  );
  const token = "rk_0123456789abcdefghjkmnpqrs";
  logError("request failed", {}, new Error(`sent ${token} with Bearer sk-abc.def`, { cause: statement }));
  expect(lines[0]).not.toMatch(/sealed\.value|hello|0123456789|sk-abc/);
  expect(written().error.message).toContain("locked");
});

it("keeps the cause of a statement that is longer than a line", () => {
  const statement = new DrizzleQueryError(`select ${"a, ".repeat(400)}b from c`, ["value"], new Error("D1 is away"));
  logError("request failed", {}, statement);
  expect(written().error.message).toMatch(/^Error\("Failed query: select a, .+ … .+ -> Error\("D1 is away"\)$/);
});

it("cuts the message of an error, and the lines of its stack", () => {
  const long = new Error("x".repeat(100_000));
  long.stack = Array.from({ length: 100 }, () => `    at ${"y".repeat(150)}`).join("\n");
  logError("request failed", {}, long);
  expect(lines[0]?.length).toBeLessThan(2500);
});

it("writes a line for any thrown value", () => {
  const hostile = new Error("kept");
  Object.defineProperty(hostile, "stack", {
    get() {
      throw new Error("never");
    },
  });
  logError("run alarm", {}, hostile);
  expect(written().error).toEqual({ name: "Error", message: 'Error("kept")', stack: [] });
  lines.length = 0;
  logError("run alarm", {}, null);
  expect(written().error.name).toBe("object");
});
