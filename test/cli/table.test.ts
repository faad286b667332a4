import { expect, test } from "vitest";
import { resultsTable } from "../../src/cli/table.ts";
import { aRun } from "./a-run.ts";

const notesOf = (run: Parameters<typeof aRun>) =>
  resultsTable([aRun(...run)], Number.POSITIVE_INFINITY)
    .split("\n")
    .filter((line) => line.includes("not scored") || line.includes("failed:"));

test("what was not scored is counted by its cause, with the command that tells more", () => {
  const [note] = notesOf([{ scored: 7, failed: { provider: 2 }, cancelled: { user: 1 } }]);
  expect(note).toBe(
    "  calculator: not scored: provider 2, user 1; why: rollcall run results run_01aaaaaaaaaaaaaaaaaaaaaaaa --outcome failed",
  );
  expect(notesOf([{ unscored: { scorer: 1 } }])[0]).toMatch(/--outcome unscored$/);
  expect(notesOf([{ cancelled: { user: 1 } }])[0]).toMatch(/: user 1$/);
});

test("what an endpoint said reaches the terminal as text", () => {
  const error = { code: "endpoint_unauthorized", message: "401 bad \x1b[31mkey\n" } as const;
  const notes = notesOf([{ failed: { provider: 10 } }, { status: "failed", error }]);
  expect(notes[1]).toBe("  calculator: failed: 401 bad \\u{1b}[31mkey⏎");
});
