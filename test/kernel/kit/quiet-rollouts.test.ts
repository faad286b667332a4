/** docs/cost.md counts no lines of the log for rollouts that end as they should. */
import { expect, onTestFinished, test } from "vitest";
import { logNotice } from "../../../src/kernel/kit/log.ts";
import { openPlatform, rolloutAt } from "../platform.ts";
import { questionScript, script, type Turns } from "../script.ts";

/** The lines of the Worker's log that name the organisation, from now to the end of the test. */
function linesAbout(orgId: string): string[] {
  const lines: string[] = [];
  const { error } = console;
  const listening = Object.assign((...parts: unknown[]) => {
    if (String(parts[0]).includes(orgId)) lines.push(String(parts[0]));
    error(...parts);
  }, error);
  console.error = listening;
  onTestFinished(() => {
    console.error = error;
  });
  return lines;
}

/** Nine queries, and the answer. */
const turns: Turns = [
  ...Array.from({ length: 9 }, (_, at) => ({
    tool_calls: [{ name: "query", arguments: { sql: `select ${at} as n from t` } }],
  })),
  "Done.",
];

test("rollouts of ten turns that are scored log nothing", async () => {
  const platform = await openPlatform();
  const lines = linesAbout(platform.scope.orgId);
  const row = { question: questionScript(turns), seed_sql: "create table t (a)", check_sql: "select a from t" };
  const run = await platform.finish({
    environment: "tool-sql",
    environment_args: { rows: "uploaded", max_turns: 10 },
    dataset: Array.from({ length: 2 }, () => ({ ...row, answer: "[]" })),
    model: script([]),
  });
  expect(run.counts).toMatchObject({ scored: 2 });
  expect((await platform.rollout(rolloutAt(run.id))).turns).toHaveLength(10);
  expect(lines).toEqual([]);
  logNotice("a line that is counted", { org_id: platform.scope.orgId });
  expect(lines).toHaveLength(1);
});
