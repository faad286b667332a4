/** The functions of accounts that the kernel and other slices call. */
import type { AccountHooks } from "../kernel/kit/account-hooks.ts";
import { findApiKey } from "./queries/api-keys.ts";
import { findProjectId } from "./queries/keys.ts";
import { readSettings } from "./queries/organizations.ts";
import { countOwnPeople, deleteOwnPeople, findMember, ownersOf } from "./queries/people.ts";
import { whoStillMay } from "./queries/standing.ts";
import { operatorKeys, revokeKeys } from "./queries/working-keys.ts";
import { auditObject } from "./rpc.ts";

export const accountHooks: AccountHooks = {
  settingsOf: ({ DB }, orgId) => readSettings(DB, orgId),
  projectId: ({ DB }, orgId, nameOrId) => findProjectId(DB, orgId, nameOrId),
  hasPayer: async ({ DB }, orgId, id) =>
    ((await findApiKey(DB, { orgId, projectId: null }, id)) ?? (await findMember(DB, orgId, id))) !== null,
  whoStillMay: ({ DB }, scope, who, needed, now) => whoStillMay(DB, scope, who, needed, now),
  ownersOf: ({ DB }, orgId, limit) => ownersOf(DB, orgId, limit),
  ...{ revokeKeys, operatorKeys, countOwnPeople, deleteOwnPeople },
  beginChange: (env, orgId, change) => auditObject(env, orgId).begin(change),
  endChange: (env, orgId, entry, outcome) => auditObject(env, orgId).end(entry, outcome),
  settingsVersion: (env, orgId) => auditObject(env, orgId).settingsVersion(),
  settingsChanged: (env, orgId) => auditObject(env, orgId).settingsChanged(),
};
