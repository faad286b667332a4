/** The hub: environments that organisations publish, and their code in isolates of its own. */
import { databaseOf } from "../kernel/db/database.ts";
import type { Slice } from "../kernel/http/slice.ts";
import { environments } from "./environments.ts";
import { npmOperations } from "./npm-routes.ts";
import { pythonOperations } from "./python-routes.ts";
import { deletePublished } from "./queries.ts";
import { hubOperations } from "./routes.ts";
import { hubEnvironments, hubGrants, hubTags, hubVersions } from "./tables.ts";

export const hub: Slice = {
  operations: [...hubOperations, ...npmOperations, ...pythonOperations],
  hooks: {
    environments,
    closeOrganization: async (env, orgId, subrequests) => {
      await subrequests.fetch(() => deletePublished(databaseOf(env), orgId));
      return {};
    },
  },
  // When a project is deleted, only its private environments go: rows of others have no project.
  tables: {
    ofProject: [hubEnvironments, hubVersions, hubTags, hubGrants],
    stored: [{ table: hubVersions, bytes: hubVersions.stored_bytes, paidBy: hubVersions.paid_by }],
  },
};
