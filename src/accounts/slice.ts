/** Accounts: organisations, projects, keys, people, invitations, sign-in, the audit log, and limits on requests. */
import { databaseOf } from "../kernel/db/database.ts";
import type { Slice } from "../kernel/http/slice.ts";
import { accountHooks } from "./hooks.ts";
import { dropSignIns } from "./queries/web-sessions.ts";
import { auditOperations } from "./routes/audit-log.ts";
import { keyOperations } from "./routes/keys.ts";
import { organizationOperations } from "./routes/organizations.ts";
import { peopleOperations } from "./routes/people.ts";
import { projectOperations } from "./routes/projects.ts";
import { sessionOperations } from "./routes/sessions.ts";
import { auditObject } from "./rpc.ts";
import { apiKeys, invitations, members, signInCodes, webSessions } from "./tables.ts";

export const accounts: Slice = {
  operations: [
    ...organizationOperations,
    ...projectOperations,
    ...keyOperations,
    ...sessionOperations,
    ...peopleOperations,
    ...auditOperations,
  ],
  hooks: {
    // The reconciliation of any project deletes ended sessions and codes of its organisation.
    expireProject: (env, { orgId }, now, limit) => dropSignIns(databaseOf(env), orgId, now, limit),
    forgetOrganization: (env, orgId, subrequests) => subrequests.object(() => auditObject(env, orgId).forget()),
  },
  tables: {
    ofProject: [apiKeys, webSessions, signInCodes],
    ofOrganization: [apiKeys, invitations, members, webSessions, signInCodes],
    expiring: [webSessions],
  },
  accounts: accountHooks,
};
