/** Types that the parts of an export share. */
import type { ExportFolder } from "./folder.ts";

/** How many items of each kind were written. */
export interface ExportCounts {
  people: number;
  keys: number;
  audit_entries: number;
  projects: number;
  endpoints: number;
  secrets: number;
  datasets: number;
  runs: number;
  rollouts: number;
}

export interface Exporting {
  readonly folder: ExportFolder;
  readonly signal: AbortSignal;
  readonly counts: ExportCounts;
  /** Ids of the runs that had not ended. */
  readonly unfinished: string[];
  /** Shows what is being written, if there is a terminal. */
  readonly show: (what: string) => void;
}
