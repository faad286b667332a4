/** Names that fields of a run had before 0.2.0. */
import { expect, test } from "vitest";
import { currentView } from "../../../src/kernel/db/old-names.ts";
import { runViewOf } from "../../../src/kernel/db/runs.ts";
import type { LiveView } from "../../../src/kernel/messages/run-records.ts";
import { RUN } from "../http/examples.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";

const LOST = { calls: 2, micros: 1480 };
const WAITS = { state: "over_budget", reason: null } as const;

test("a stored report with lost_holds is read as one with lost_reservations", () => {
  const endpoint = endpointRow();
  const owner = { org_id: "org", project_id: "pj" };
  const report = { ...RUN.report, lost_holds: LOST };
  const run = { ...runRow(endpoint, { report, status: "completed", finished_at: 2000 }), ...owner };
  const view = runViewOf({ run, endpoint: { ...endpoint, name: null }, fleet: null });
  expect(view.report).toEqual({ ...RUN.report, lost_reservations: LOST });
});

test("the view of an object with the earlier code gets the current names, and one with the current names stays", () => {
  const { counts, error, max_concurrent, dead_letters } = RUN;
  const common = { status: "running", counts, error, max_concurrent, dead_letters, settled_at: null, training: null };
  const earlier: object = { ...common, flow: WAITS, report: { ...RUN.report, lost_holds: LOST } };
  const current: object = { ...common, status_reason: WAITS, report: { ...RUN.report, lost_reservations: LOST } };
  const ended: object = { ...common, status_reason: null, report: RUN.report };
  expect(currentView(earlier as LiveView)).toEqual(current);
  expect(currentView(current as LiveView)).toEqual(current);
  expect(currentView(ended as LiveView)).toEqual(ended);
});
