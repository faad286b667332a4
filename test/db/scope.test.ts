/**
 * No function of src/db reads or changes what is not its caller's: each that takes a database is called by another
 * project of the same organisation and by another organisation, which have the same things under the same names and name
 * the first one's ids. A function that is missing in `CASES` fails the first test.
 */
import { env } from "cloudflare:workers";
import { eq, exists, sql } from "drizzle-orm";
import { expect, test } from "vitest";
import type { Scope } from "../../src/contract/scope.ts";
import * as apiKeys from "../../src/db/api-keys.ts";
import * as datasets from "../../src/db/datasets.ts";
import * as endpoints from "../../src/db/endpoints.ts";
import * as idempotency from "../../src/db/idempotency-keys.ts";
import * as invitations from "../../src/db/invitations.ts";
import * as verdicts from "../../src/db/judge-verdicts.ts";
import * as keys from "../../src/db/keys.ts";
import * as organizations from "../../src/db/organizations.ts";
import * as page from "../../src/db/page.ts";
import * as people from "../../src/db/people.ts";
import * as projects from "../../src/db/projects.ts";
import * as runs from "../../src/db/runs.ts";
import * as tables from "../../src/db/schema.ts";
import { inOrganization, inProject } from "../../src/db/scoped.ts";
import * as secrets from "../../src/db/secrets.ts";
import { keyRow } from "../api/accounts.ts";
import { endpointRow, runRow } from "../api/run-rows.ts";
import { type NotedStatement, notingDatabase, ownedRows, type Tenant, threeTenants } from "./tenants.ts";

const FUNCTIONS: Readonly<Record<string, unknown>> = {
  ...{ ...datasets, ...endpoints, ...idempotency, ...verdicts },
  ...{ ...keys, ...page, ...runs, ...secrets },
  ...{ ...apiKeys, ...invitations, ...organizations, ...people, ...projects },
};

/** These give a request its scope, or are the operator's; what is inserted names its organisation itself. */
const WITHOUT_SCOPE = [
  ...["findKey", "findTrainerToken", "findInvitationByHash", "membershipOf", "personOf"],
  ...["findAnyOrganization", "listOrganizations", "insertFirstOrganization", "insertOrganization", "insertKey"],
];

/** Asks in this scope for the things of the tenant who bears the mark, or makes more of them. */
type Case = (database: D1Database, scope: Scope, mark: string) => unknown;

const FIRST = { after: null, limit: 10, order: "asc" } as const;
const ANY_RUN = { ...FIRST, kind: null, status: null, environment: null, metadata: {} };
const at = { created_at: 2000 };
const newSecret = () => ({ id: crypto.randomUUID(), name: "new", sealed_value: "sealed", ...at, updated_at: 2000 });

const CASES: Readonly<Record<string, Case>> = {
  findDataset: async (d1, scope, mark) => [
    await datasets.findDataset(d1, scope, { id: `ds_${mark}` }),
    await datasets.findDataset(d1, scope, { name: "name" }),
  ],
  listDatasets: (d1, scope) => datasets.listDatasets(d1, scope, FIRST),
  insertDataset: (d1, scope) => {
    const row = { id: crypto.randomUUID(), name: "new", rows: 1, bytes: 1, sha256: "s", environment: null, ...at };
    return datasets.insertDataset(d1, scope, row, null);
  },
  deleteUnusedDataset: async (d1, scope, mark) => [
    await datasets.deleteUnusedDataset(d1, scope, `ds_${mark}`),
    await datasets.deleteUnusedDataset(d1, scope, `ds-unused_${mark}`),
  ],
  getEndpoint: (d1, scope, mark) => endpoints.getEndpoint(d1, scope, `ep_${mark}`),
  findEndpoint: async (d1, scope, mark) => [
    await endpoints.findEndpoint(d1, scope, `ep_${mark}`),
    await endpoints.findEndpoint(d1, scope, "name"),
  ],
  listEndpoints: (d1, scope) => endpoints.listEndpoints(d1, scope, FIRST),
  insertEndpoint: (d1, scope) => {
    const unset = { max_concurrent: null, rpm: null, prices: null, capabilities: null, updated_at: null };
    return endpoints.insertEndpoint(d1, scope, { ...endpointRow(), ...unset, name: "new", deleted_at: null }, null);
  },
  updateEndpoint: async (d1, scope, mark) => {
    const unset = { max_concurrent: null, rpm: null, prices: null, capabilities: null, updated_at: null };
    const before = { ...endpointRow({ id: `ep_${mark}` }), ...unset, name: "name", deleted_at: null };
    return await endpoints.updateEndpoint(d1, scope, before, { rpm: 7 });
  },
  deleteEndpoint: async (d1, scope, mark) => [
    await endpoints.deleteEndpoint(d1, scope, `ep_${mark}`, 3000),
    await endpoints.deleteEndpoint(d1, scope, `ep-unused_${mark}`, 3000),
  ],
  unfinishedRuns: (d1, scope, mark) => runs.unfinishedRuns(d1, scope, eq(tables.runs.endpoint_id, `ep_${mark}`)),
  recall: (d1, scope) => idempotency.recall(d1, scope, "createSecret", "k"),
  insertOnce: (d1, scope) => {
    const made = { operation: "createSecret", key: "k2", request_hash: "h", resource_id: "sec_new", ...at };
    return idempotency.insertOnce(d1, scope, inProject(d1, scope).insert(tables.secrets, newSecret()), made);
  },
  findVerdicts: async (d1, scope) => [...(await verdicts.findVerdicts(d1, scope, ["k"]))],
  keepVerdict: (d1, scope) => verdicts.keepVerdict(d1, scope, { key: "k2", verdict: { value: 1, reason: "" }, ...at }),
  replaceTrainerToken: (d1, scope, mark) =>
    keys.replaceTrainerToken(d1, scope, { hash: crypto.randomUUID(), run_id: `run_${mark}`, ...at }, 9000),
  insertRun: (d1, scope) => {
    const endpoint = endpointRow();
    return runs.insertRun(d1, scope, runRow(endpoint), endpoint, [endpointRow()]);
  },
  getRun: (d1, scope, mark) => runs.getRun(d1, scope, `run_${mark}`),
  findRunByIdempotencyKey: (d1, scope) => runs.findRunByIdempotencyKey(d1, scope, "k"),
  listRuns: (d1, scope) => runs.listRuns(d1, scope, ANY_RUN),
  updateRun: (d1, scope, mark) => runs.updateRun(d1, scope, `run_${mark}`, { dead_letters: 5 }),
  changeRun: (d1, scope, mark) => runs.changeRun(d1, scope, `run_${mark}`, { name: "other", max_concurrent: 3 }),
  findSecret: async (d1, scope, mark) => [
    await secrets.findSecret(d1, scope, `sec_${mark}`),
    await secrets.findSecret(d1, scope, "name"),
  ],
  secretsNamed: (d1, scope) => secrets.secretsNamed(d1, scope, ["name"]),
  listSecrets: (d1, scope) => secrets.listSecrets(d1, scope, FIRST),
  insertSecret: (d1, scope) => secrets.insertSecret(d1, scope, newSecret(), null),
  updateSecret: (d1, scope, mark) =>
    secrets.updateSecret(d1, scope, `sec_${mark}`, { sealed_value: "x", updated_at: 3000 }),
  deleteSecret: (d1, scope, mark) => secrets.deleteSecret(d1, scope, `sec_${mark}`),
};

/** Of an organisation, or of one project of it. */
interface Reach {
  readonly orgId: string;
  readonly projectId: string | null;
}
type OrganizationCase = (database: D1Database, reach: Reach, mark: string) => unknown;

const newKey = (mark: string) => {
  const { org_id: _, ...key } = { ...keyRow({ orgId: "", projectId: "" }, crypto.randomUUID()), ...at };
  return { ...key, project_id: `pj_${mark}` };
};
const invitationRow = (mark: string) => {
  const id = `${mark}-${crypto.randomUUID()}`;
  const times = { ...at, expires_at: 9000, accepted_at: null };
  return { id, email: "f@example.com", role: "viewer" as const, hash: id, invited_by: "key_1", ...times };
};

/** The same of the things of an organisation; a stranger is another organisation. */
const OF_ORGANIZATION: Readonly<Record<string, OrganizationCase>> = {
  findProjectId: async (d1, { orgId }, mark) => [
    await keys.findProjectId(d1, orgId, `pj_${mark}`),
    await keys.findProjectId(d1, orgId, mark),
  ],
  insertApiKey: (d1, { orgId }, mark) => apiKeys.insertApiKey(d1, orgId, newKey(mark), null),
  rotateApiKey: (d1, { orgId }, mark) => {
    return apiKeys.rotateApiKey(d1, orgId, { before: `key_${mark}`, next: newKey(mark), ends: 9000 }, null);
  },
  rememberIf: async (d1, { orgId }) => {
    const made = {
      operation: "createProject",
      key: crypto.randomUUID(),
      request_hash: "h",
      resource_id: "pj_new",
      ...at,
    };
    for (const statement of idempotency.rememberIf(d1, orgId, sql`1 = 1`, made)) await statement;
  },
  findOrganization: (d1, { orgId }) => organizations.findOrganization(d1, orgId),
  updateOrganization: (d1, { orgId }) =>
    organizations.updateOrganization(d1, orgId, { allowed_hosts: ["gpu.example"] }),
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
  changeRole: (d1, { orgId }, mark) => people.changeRole(d1, orgId, `per_${mark}`, "viewer"),
  removeMember: (d1, { orgId }, mark) => {
    return people.removeMember(d1, orgId, { id: `per_${mark}`, email: "e@example.com" }, 3000);
  },
  findInvitation: (d1, { orgId }, mark) => invitations.findInvitation(d1, orgId, `inv_${mark}`),
  listInvitations: (d1, { orgId }) => invitations.listInvitations(d1, orgId, FIRST),
  insertInvitation: (d1, { orgId }, mark) => invitations.insertInvitation(d1, orgId, invitationRow(mark), null),
  deleteInvitation: (d1, { orgId }, mark) => invitations.deleteInvitation(d1, orgId, `inv_${mark}`),
  acceptInvitation: (d1, { orgId }, mark) => {
    const key = { ...newKey(mark), person_id: `per_${mark}` };
    return invitations.acceptInvitation(d1, { id: `inv_${mark}`, org_id: orgId, role: "viewer" }, key);
  },
};

/** To these a project beside in the same organisation is a stranger as well. */
const IN_REACH: typeof OF_ORGANIZATION = {
  findApiKey: (d1, reach, mark) => apiKeys.findApiKey(d1, reach, `key_${mark}`),
  listApiKeys: (d1, reach) => apiKeys.listApiKeys(d1, reach, FIRST),
  updateApiKey: (d1, reach, mark) => apiKeys.updateApiKey(d1, reach, `key_${mark}`, { name: "other" }),
  revokeApiKey: (d1, reach, mark) => apiKeys.revokeApiKey(d1, reach, `key_${mark}`, 3000),
  findProject: (d1, reach, mark) => projects.findProject(d1, reach, `pj_${mark}`),
  listProjects: (d1, reach) => projects.listProjects(d1, reach, FIRST),
};

test("every function of src/db that takes a database is called below, or gives a request its scope", () => {
  const takingOne = Object.entries(FUNCTIONS).filter(([, one]) =>
    /^(async )?function \w+\(database\b/.test(String(one)),
  );
  expect(takingOne.map(([name]) => name).sort()).toEqual(
    [...Object.keys({ ...CASES, ...OF_ORGANIZATION, ...IN_REACH }), ...WITHOUT_SCOPE].sort(),
  );
});

test.each(Object.entries(CASES))("%s reads and changes its owner's rows, and nobody else's", async (_name, ask) => {
  const [owner, ...strangers] = await threeTenants();
  const before = await ownedRows(owner);
  for (const stranger of strangers) {
    const { database, statements } = notingDatabase();
    const answer = await ask(database, stranger.scope, owner.mark);
    expect(JSON.stringify(answer) ?? "").not.toContain(owner.mark);
    expect(await ownedRows(owner)).toEqual(before);
    expect(statements).not.toEqual([]);
    for (const statement of statements) expect(unlimited(statement, stranger)).toEqual([]);
  }
  const answer = await ask(env.DB, owner.scope, owner.mark);
  const found = (JSON.stringify(answer) ?? "").includes(owner.mark);
  const changed = JSON.stringify(await ownedRows(owner)) !== JSON.stringify(before);
  expect(found || changed).toBe(true);
});

test.each(Object.entries({ ...OF_ORGANIZATION, ...IN_REACH }))("%s keeps to its owner", async (name, ask) => {
  const [owner, beside, far] = await threeTenants();
  const before = await ownedRows(owner);
  const strangers: Reach[] = [far.scope, { ...far.scope, projectId: null }];
  if (name in IN_REACH) strangers.push(beside.scope);
  for (const stranger of strangers) {
    const { database, statements } = notingDatabase();
    expect(JSON.stringify(await ask(database, stranger, owner.mark)) ?? "").not.toContain(owner.mark);
    expect(await ownedRows(owner)).toEqual(before);
    expect(statements).not.toEqual([]);
    for (const { values } of statements) expect(values).toContain(stranger.orgId);
  }
  const answer = JSON.stringify(await ask(env.DB, { ...owner.scope, projectId: null }, owner.mark)) ?? "";
  const changed = JSON.stringify(await ownedRows(owner)) !== JSON.stringify(before);
  expect(answer.includes(owner.mark) || changed).toBe(true);
});

/** The tables of the statement beyond those that it limits to the tenant, and those that it names past the schema. */
function unlimited({ text, values }: NotedStatement, { scope }: Tenant): string[] {
  const named = [...text.matchAll(/\b(?:from|join|update|into)\s+(?!json_each\()"?(\w+)"?/g)].map(
    ([, name = ""]) => name,
  );
  const written = /^insert into "\w+" \([^)]*"org_id", "project_id"/.test(text) ? 1 : 0;
  const limited = [...text.matchAll(/"org_id" = \? and ("\w+"\.)?"project_id" = \?/g)].length;
  const own = values.filter((value) => value === scope.orgId).length;
  return own === written + limited ? named.slice(own) : [...named, "with another's id"];
}

const IN_PROJECT = [
  ...[tables.apiKeys, tables.datasets, tables.deletions, tables.endpoints, tables.idempotencyKeys],
  ...[tables.judgeVerdicts, tables.runs, tables.secrets, tables.trainerTokens],
];
const IN_ORGANIZATION = [
  ...[tables.apiKeys, tables.deletions, tables.invitations, tables.members],
  ...[tables.organizations, tables.projects],
];

test("statements about any table of a project reach the rows of that project alone", async () => {
  const [owner, beside, far] = await threeTenants();
  const before = await Promise.all([beside, far].map(ownedRows));
  const project = inProject(env.DB, owner.scope);
  for (const table of IN_PROJECT) {
    const rows = await project.select(table);
    expect(rows.length).toBeGreaterThan(0);
    expect(new Set(rows.map(({ project_id }) => project_id))).toEqual(new Set([owner.scope.projectId]));
    await project.update(table, { created_at: 7777 });
    expect((await project.select(table)).map(({ created_at }) => created_at)).toEqual(rows.map(() => 7777));
    await project.delete(table);
    expect(await project.select(table)).toEqual([]);
  }
  expect(await Promise.all([beside, far].map(ownedRows))).toEqual(before);
});

test("statements about any table of an organisation reach the rows of all its projects and no other's", async () => {
  const [owner, beside, far] = await threeTenants();
  const before = await ownedRows(far);
  const organization = inOrganization(env.DB, owner.scope.orgId);
  for (const table of IN_ORGANIZATION) {
    const said = JSON.stringify(await organization.select(table));
    if (table !== tables.organizations) expect(said).toContain(beside.mark);
    expect(said).toContain(owner.mark);
    expect(said).not.toContain(far.mark);
    await organization.update(table, { created_at: 7777 });
    await organization.delete(table);
    expect(await organization.select(table)).toEqual([]);
  }
  expect(await ownedRows(far)).toEqual(before);
});

test("both tables of a join are limited to the owner, and people are found by their membership", async () => {
  const [owner, beside, far] = await threeTenants();
  const { runs, endpoints, members, people } = tables;
  const pairs = { run: runs.id, endpoint: endpoints.id };
  const any = sql`1 = 1`;
  const joined = await inProject(env.DB, owner.scope).joined(pairs, [runs, endpoints], any);
  expect(joined.length).toBeGreaterThan(0);
  expect(JSON.stringify(joined)).not.toMatch(new RegExp(`${beside.mark}|${far.mark}`));
  const organization = inOrganization(env.DB, owner.scope.orgId);
  const known = await organization.joined({ id: people.id }, [members, people], eq(people.id, members.person_id));
  expect(known.map(({ id }) => id).sort()).toEqual([`per_${owner.mark}`, `per_${beside.mark}`].sort());
});

test("an expression that names a table by hand is refused wherever it stands", async () => {
  const [{ scope }] = await threeTenants();
  const project = inProject(env.DB, scope);
  const { runs, endpoints, secrets } = tables;
  const anybodys = sql`exists (select 1 from ${runs})`;
  const refused = "an expression names the table runs";
  expect(() => project.select(secrets, sql`not ${anybodys}`)).toThrow(refused);
  expect(() => project.columns({ any: anybodys }, secrets)).toThrow(refused);
  expect(() => project.columns({ any: anybodys.as("any") }, secrets)).toThrow(refused);
  expect(() => project.joined({ id: secrets.id }, [secrets, endpoints], anybodys)).toThrow(refused);
  expect(() => project.insertIf(anybodys, secrets, newSecret())).toThrow(refused);
  expect(() => project.update(secrets, { name: anybodys })).toThrow(refused);
  expect(() => project.delete(secrets, anybodys)).toThrow(refused);
  expect(await project.columns({ id: secrets.id }, secrets, exists(project.select(runs)))).toHaveLength(1);
});

test("a row is inserted on a condition with its values as a plain insert writes them", async () => {
  const [{ scope }] = await threeTenants();
  const project = inProject(env.DB, scope);
  const { endpoints } = tables;
  const row = {
    ...endpointRow(),
    name: "priced",
    prices: { input_per_mtok_micros: 5, output_per_mtok_micros: 7 },
    rpm: 0,
  };
  await project.insertIf(sql`1 = 0`, endpoints, row);
  expect(await project.select(endpoints, eq(endpoints.id, row.id))).toEqual([]);
  await project.insertIf(sql`1 = 1`, endpoints, row);
  expect(await project.select(endpoints, eq(endpoints.id, row.id))).toMatchObject([row]);
});
