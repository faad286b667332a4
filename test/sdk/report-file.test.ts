import { expect, test } from "vitest";
import { readReportFile } from "../../src/sdk/report-file.ts";
import { recorded } from "./recording-fetch.ts";

const ASKED = "What is it that nobody else may read?";
const COUNTS = { dispatched: 2, unscored: {}, failed: { provider: 1 }, cancelled: {} };

test("the report as one file has no text of the prompts, neither in its list nor in the first failed rollouts", async () => {
  const { client, asked } = recorded(({ path }) => {
    if (path.includes("/histogram")) return Response.json({ object: "histogram" });
    if (!path.includes("/rollouts")) return Response.json({ id: "run_1", counts: COUNTS, report: { metrics: {} } });
    const data = ["ro_1", "ro_2"].map((id) => ({ id, task_key: "2c26", task_text: ASKED }));
    return Response.json({ object: "list", data, has_more: false, last_id: "c" });
  });
  const file = await readReportFile(client, "run_1", 7);
  expect(asked.filter(({ path }) => path.includes("/rollouts"))).toHaveLength(2);
  expect(file.rollouts).toEqual(["ro_1", "ro_2"].map((id) => ({ id, task_key: "2c26", task_text: null })));
  expect(Object.values(file.firsts)).toEqual([{ id: "ro_1", task_key: "2c26", task_text: null }]);
  expect(JSON.stringify(file)).not.toContain(ASKED);
});
