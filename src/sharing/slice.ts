/** Links with which anybody can read a run's report. */
import { databaseOf } from "../kernel/db/database.ts";
import type { Slice } from "../kernel/http/slice.ts";
import { dropReportLinks } from "./queries.ts";
import { reportLinkOperations } from "./routes.ts";
import { reportLinks } from "./tables.ts";

export const sharing: Slice = {
  operations: reportLinkOperations,
  hooks: { expireProject: (env, scope, now, limit) => dropReportLinks(databaseOf(env), scope, now, limit) },
  tables: { ofProject: [reportLinks], ofRun: [reportLinks], expiring: [reportLinks] },
};
