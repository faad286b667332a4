/** Query cases for organisations and what belongs to them: projects, keys, people, sessions. */
import * as apiKeys from "../../src/accounts/queries/api-keys.ts";
import * as invitations from "../../src/accounts/queries/invitations.ts";
import * as keys from "../../src/accounts/queries/keys.ts";
import * as organizations from "../../src/accounts/queries/organizations.ts";
import * as people from "../../src/accounts/queries/people.ts";
import * as projects from "../../src/accounts/queries/projects.ts";
import { personBehind, whoStillMay } from "../../src/accounts/queries/standing.ts";
import * as sessions from "../../src/accounts/queries/web-sessions.ts";
import * as workingKeys from "../../src/accounts/queries/working-keys.ts";
import type { Database } from "../../src/kernel/db/database.ts";
import type { OrganizationCase } from "../kernel/db/cases.ts";
import { codeRow, sessionRow } from "../kernel/db/tenants.ts";
import { keyRow } from "./admit.ts";

const FIRST = { after: null, limit: 10, order: "asc" } as const;
const at = { created_at: 2000 };

/** A key that may change anything in the organisation. */
const adminOf = async (d1: Database, orgId: string) => {
  const key = { ...newKey(""), project_id: null, scopes: ["admin" as const] };
  await apiKeys.insertApiKey(d1, orgId, key, null);
  return key.id;
};
const newKey = (mark: string) => {
  const { org_id: _, ...key } = { ...keyRow({ orgId: "", projectId: "" }, crypto.randomUUID()), ...at };
  return { ...key, project_id: `pj_${mark}` };
};
const invitationRow = (mark: string) => {
  const id = `${mark}-${crypto.randomUUID()}`;
  const times = { ...at, expires_at: 9000, accepted_at: null };
  return { id, email: "f@example.com", role: "viewer" as const, hash: id, invited_by: "key_1", ...times };
};

export const ACCOUNT_CASES: Readonly<Record<string, OrganizationCase>> = {
  findProjectId: async (d1, { orgId }, mark) => [
    await keys.findProjectId(d1, orgId, `pj_${mark}`),
    await keys.findProjectId(d1, orgId, mark),
  ],
  insertApiKey: (d1, { orgId }, mark) => apiKeys.insertApiKey(d1, orgId, newKey(mark), null),
  rotateApiKey: (d1, { orgId }, mark) => {
    return apiKeys.rotateApiKey(d1, orgId, { before: `key_${mark}`, next: newKey(mark), ends: 9000 }, null);
  },
  whoStillMay: async (d1, { orgId }, mark) => {
    const scope = { orgId, projectId: `pj_${mark}` };
    return [
      await whoStillMay(d1, scope, `key_${mark}`, "runs:read", 3000),
      await whoStillMay(d1, scope, `per_${mark}`, "runs:read", 3000),
    ];
  },
  operatorKeys: async (d1, { orgId }) => {
    await apiKeys.insertApiKey(d1, orgId, { ...newKey(""), project_id: null, scopes: ["operator"] }, null);
    return await workingKeys.operatorKeys(d1, orgId, 3000);
  },
  countOwnPeople: (d1, { orgId }) => people.countOwnPeople(d1, orgId),
  deleteOwnPeople: async (d1, { orgId }) => [
    await people.countOwnPeople(d1, orgId),
    await people.deleteOwnPeople(d1, orgId),
  ],
  personBehind: (d1, { orgId }, mark) => personBehind(d1, orgId, `key_${mark}`),
  readSettings: (d1, { orgId }) => organizations.readSettings(d1, orgId),
  findOrganization: (d1, { orgId }) => organizations.findOrganization(d1, orgId),
  updateOrganization: (d1, { orgId }) =>
    organizations.updateOrganization(d1, orgId, { allowed_hosts: ["gpu.example"] }),
  ownersOf: async (d1, { orgId }, mark) => {
    const by = await adminOf(d1, orgId);
    await people.changeRole(d1, orgId, { id: `per_${mark}`, role: "owner", by }, 3000);
    return await people.ownersOf(d1, orgId, 5);
  },
  insertProject: (d1, { orgId }, mark) => {
    const row = {
      id: `${mark}-${crypto.randomUUID()}`,
      name: crypto.randomUUID(),
      retention: {},
      deleted_at: null,
      ...at,
    };
    return projects.insertProject(d1, orgId, row, null);
  },
  updateProject: (d1, { orgId }, mark) => projects.updateProject(d1, orgId, `pj_${mark}`, { name: "other" }),
  findMember: (d1, { orgId }, mark) => people.findMember(d1, orgId, `per_${mark}`),
  listMembers: (d1, { orgId }) => people.listMembers(d1, orgId, FIRST),
  changeRole: async (d1, { orgId }, mark) => {
    const by = await adminOf(d1, orgId);
    return await people.changeRole(d1, orgId, { id: `per_${mark}`, role: "viewer", by }, 3000);
  },
  removeMember: async (d1, { orgId }, mark) => {
    const by = await adminOf(d1, orgId);
    return await people.removeMember(d1, orgId, { id: `per_${mark}`, email: "e@example.com", by }, 3000);
  },
  findInvitation: (d1, { orgId }, mark) => invitations.findInvitation(d1, orgId, `inv_${mark}`),
  listInvitations: (d1, { orgId }) => invitations.listInvitations(d1, orgId, FIRST),
  insertInvitation: (d1, { orgId }, mark) => invitations.insertInvitation(d1, orgId, invitationRow(mark), null),
  insertSignInCode: (d1, { orgId }, mark) => sessions.insertSignInCode(d1, orgId, codeRow(mark, crypto.randomUUID())),
  beginSession: async (d1, { orgId }, mark) => [
    await sessions.beginSession(d1, orgId, sessionRow(mark, crypto.randomUUID()), `code-${mark}`),
    await sessions.beginSession(d1, orgId, sessionRow(mark, crypto.randomUUID()), null),
  ],
  dropSignIns: (d1, { orgId }) => sessions.dropSignIns(d1, orgId, 9_000, 10),
  deleteInvitation: (d1, { orgId }, mark) => invitations.deleteInvitation(d1, orgId, `inv_${mark}`),
  acceptInvitation: (d1, { orgId }, mark) => {
    const key = { ...newKey(mark), person_id: `per_${mark}` };
    const person = { email: `${mark}@example.com`, role: "viewer", name: null, proven_at: null } as const;
    const accepted = { id: `inv_${mark}`, org_id: orgId, ...person };
    return invitations.acceptInvitation(d1, accepted, key);
  },
};

/** For these queries, another project of the same organisation is out of reach too. */
export const IN_REACH: typeof ACCOUNT_CASES = {
  findApiKey: (d1, reach, mark) => apiKeys.findApiKey(d1, reach, `key_${mark}`),
  listApiKeys: (d1, reach) => apiKeys.listApiKeys(d1, reach, FIRST),
  updateApiKey: async (d1, reach, mark) => {
    const by = { who: await adminOf(d1, reach.orgId), now: 3000 };
    return await apiKeys.updateApiKey(d1, reach, `key_${mark}`, { name: "other" }, by);
  },
  revokeKeys: (d1, reach) => workingKeys.revokeKeys(d1, reach, 3000),
  revokeApiKey: (d1, reach, mark) => apiKeys.revokeApiKey(d1, reach, `key_${mark}`, 3000),
  findWebSession: (d1, reach, mark) => sessions.findWebSession(d1, { ...reach, whose: null }, `ses_${mark}`),
  listWebSessions: (d1, reach) => sessions.listWebSessions(d1, { ...reach, whose: null }, FIRST),
  deleteWebSession: (d1, reach, mark) => sessions.deleteWebSession(d1, { ...reach, whose: null }, `ses_${mark}`),
  findProject: (d1, reach, mark) => projects.findProject(d1, reach, `pj_${mark}`),
  listProjects: (d1, reach) => projects.listProjects(d1, reach, FIRST),
};
