import { expect, test } from "vitest";
import { judge } from "./expected-errors.ts";

const line = (level: string, message: string, error: string) =>
  JSON.stringify({ time: "2026-01-01T00:00:00.000Z", level, message, error: { message: error } });

test("an expected line is quiet; another error with its message, and another message, are not", () => {
  expect(judge(line("error", "settling", 'Error("killed")'))).toBe("quiet");
  expect(judge(line("error", "settling", 'TypeError("x is undefined")'))).toBe("unexpected");
  expect(judge(line("error", "nothing known", 'Error("killed")'))).toBe("unexpected");
  expect(judge(line("notice", "webhook.disabled", ""))).toBe("quiet");
  expect(judge("a print of something else")).toBe("other");
});

test("whatever fails because a test aborts all objects is quiet", () => {
  const aborted = 'Error("Application called abortAllDurableObjects().")';
  expect(judge(line("error", "nothing known", aborted))).toBe("quiet");
});
