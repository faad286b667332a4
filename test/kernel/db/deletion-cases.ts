/** The same for functions that delete rows, and for rows that are deleted after a time. */
import type { Retention } from "../../../src/contract/identity.ts";
import * as deletedRows from "../../../src/kernel/db/deleted-rows.ts";
import * as stored from "../../../src/kernel/db/stored-bytes.ts";
import * as used from "../../../src/kernel/db/used-versions.ts";
import * as deletions from "../../../src/retention/deletion-queries.ts";
import * as retention from "../../../src/retention/expiry-queries.ts";
import * as owners from "../../../src/retention/owner-queries.ts";
import type { Case, OrganizationCase } from "./cases.ts";

const NOW = 5000;
const made = () => ({ id: crypto.randomUUID(), requested_by: "key_1", created_at: NOW });
const KEPT: Retention = { runs_days: 1, datasets_days: 1, verdicts_days: 1, idempotency_keys_days: 1 };
const FIRST = { after: null, limit: 10, order: "asc" } as const;

export const DELETION_CASES: Readonly<Record<string, Case>> = {
  countRowsOfRun: (d1, scope, mark) => deletedRows.countRowsOfRun(d1, scope, `run_${mark}`),
  deleteRowsOfRun: (d1, scope, mark) => deletedRows.deleteRowsOfRun(d1, scope, `run_${mark}`),
  beginRunDeletion: async (d1, scope, mark) => {
    const { deletion, usedBy } = await deletions.beginRunDeletion(d1, scope, `run_${mark}`, made());
    return [deletion, usedBy];
  },
  hideRun: (d1, scope, mark) => deletions.hideRun(d1, scope, `run_${mark}`, NOW),
  unfinishedDeletions: (d1, scope) => deletions.unfinishedDeletions(d1, scope, 10),
  kindOfRun: (d1, scope, mark) => deletions.kindOfRun(d1, scope, `run_${mark}`),
  evalsOf: (d1, scope, mark) => deletions.evalsOf(d1, scope, `run_${mark}`, 10),
  retentionOf: (d1, scope) => retention.retentionOf(d1, scope),
  endedRunsBefore: (d1, scope) => retention.endedRunsBefore(d1, scope, NOW, 10),
  datasetsBefore: (d1, scope) => retention.datasetsBefore(d1, scope, NOW, 10),
  uploadsBefore: (d1, scope) => retention.uploadsBefore(d1, scope, NOW, 10),
  dropJudgements: (d1, scope) => retention.dropJudgements(d1, scope, NOW, 10),
  dropIdempotencyKeys: (d1, scope) => retention.dropIdempotencyKeys(d1, scope, NOW, 10),
  storedIn: (d1, scope) => stored.storedIn(d1, scope),
  publishedVersionsUsed: (d1, scope) => used.publishedVersionsUsed(d1, scope, { start: 0, end: NOW }),
  hasToExpire: (d1, scope) => retention.hasToExpire(d1, scope, KEPT),
  runsOf: (d1, scope) => owners.runsOf(d1, scope, 10),
  countRowsOfProject: (d1, scope) => owners.countRowsOfProject(d1, scope),
  deleteRowsOfProject: (d1, scope) => owners.deleteRowsOfProject(d1, scope, 10),
};

export const DELETIONS_OF_ORGANIZATION: Readonly<Record<string, OrganizationCase>> = {
  noteDeletion: (d1, { orgId }, mark) => {
    return deletions.noteDeletion(d1, orgId, `del_${mark}`, { state: "done", counts: { rows: 1 }, finished_at: NOW });
  },
  beginProjectDeletion: (d1, { orgId }, mark) => owners.beginProjectDeletion(d1, orgId, `pj_${mark}`, made()),
  beginOrganizationDeletion: async (d1, { orgId }) => {
    return (await owners.beginOrganizationDeletion(d1, orgId, { ...made(), byOperator: false })) !== null;
  },
  projectsOf: (d1, { orgId }) => owners.projectsOf(d1, orgId, 10),
  nameOfOrganization: (d1, { orgId }) => owners.nameOfOrganization(d1, orgId),
  countRowsOfOrganization: (d1, { orgId }) => owners.countRowsOfOrganization(d1, orgId, "key_1"),
  deleteRowsOfOrganization: (d1, { orgId }) => owners.deleteRowsOfOrganization(d1, orgId),
  storedBy: (d1, { orgId }) => stored.storedBy(d1, orgId),
  dropReceipts: (d1, { orgId }) => retention.dropReceipts(d1, orgId, NOW, 10),
};

export const DELETIONS_IN_REACH: typeof DELETIONS_OF_ORGANIZATION = {
  getDeletion: (d1, reach, mark) => deletions.getDeletion(d1, reach, `del_${mark}`),
  listDeletions: (d1, reach) => deletions.listDeletions(d1, reach, FIRST),
};
