/** The functions of accounts that the kernel and other slices call. */
import { databaseOf } from "../kernel/db/database.ts";
import type { AccountHooks } from "../kernel/kit/account-hooks.ts";
import { findApiKey } from "./queries/api-keys.ts";
import { findProjectId } from "./queries/keys.ts";
import { readSettings } from "./queries/organizations.ts";
import { countOwnPeople, deleteOwnPeople, findMember, ownersOf } from "./queries/people.ts";
import { whoStillMay } from "./queries/standing.ts";
import { operatorKeys, revokeKeys } from "./queries/working-keys.ts";
import { auditObject } from "./rpc.ts";

export const accountHooks: AccountHooks = {
  settingsOf: (env, orgId) => readSettings(databaseOf(env), orgId),
  projectId: (env, orgId, nameOrId) => findProjectId(databaseOf(env), orgId, nameOrId),
  hasPayer: async (env, orgId, id) =>
    ((await findApiKey(databaseOf(env), { orgId, projectId: null }, id)) ??
      (await findMember(databaseOf(env), orgId, id))) !== null,
  whoStillMay: (env, scope, who, needed, now) => whoStillMay(databaseOf(env), scope, who, needed, now),
  ownersOf: (env, orgId, limit) => ownersOf(databaseOf(env), orgId, limit),
  ...{ revokeKeys, operatorKeys, countOwnPeople, deleteOwnPeople },
  beginChange: (env, orgId, change) => auditObject(env, orgId).begin(change),
  endChange: (env, orgId, entry, outcome) => auditObject(env, orgId).end(entry, outcome),
  settingsVersion: (env, orgId) => auditObject(env, orgId).settingsVersion(),
  settingsChanged: (env, orgId) => auditObject(env, orgId).settingsChanged(),
};
