/**
 * Names that fields of a run had before 0.2.0. Rows of D1 have them. During a deployment, replies of objects that still
 * run the earlier code have them too. Every stored report and every live view that the API shows is read by this module.
 */
import type { RunReport } from "../../contract/report.ts";
import type { RunView } from "../../contract/run.ts";

interface OldReport {
  readonly lost_holds?: RunReport["lost_reservations"];
}

type Renamed = Pick<RunView, "status_reason" | "report">;

interface OldView extends Renamed {
  readonly flow?: RunView["status_reason"];
}

/** `lost_holds` is `lost_reservations` now. */
export function currentReport(stored: RunReport & OldReport): RunReport {
  const { lost_holds, ...report } = stored;
  return lost_holds === undefined ? report : { ...report, lost_reservations: lost_holds };
}

/** `flow` is `status_reason` now. */
export function currentView<View extends OldView>(live: View): Omit<View, keyof OldView> & Renamed {
  const { flow, status_reason, report, ...rest } = live;
  return { ...rest, status_reason: flow === undefined ? status_reason : flow, report: currentReport(report) };
}
