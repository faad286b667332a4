/**
 * No query of the kernel or of a slice reads or changes rows that are not its caller's. Each function that takes a
 * database is called by another project of the same organisation and by another organisation. These have the same
 * things with the same names, and pass the ids of the first one. A function without a case fails the first test. All
 * tenants are in the second D1 database: a function that asks the first one finds nothing.
 */
import { env } from "cloudflare:workers";
import { count, eq, exists, sql } from "drizzle-orm";
import { expect, test } from "vitest";
import * as apiKeys from "../../../src/accounts/queries/api-keys.ts";
import * as invitations from "../../../src/accounts/queries/invitations.ts";
import * as keys from "../../../src/accounts/queries/keys.ts";
import * as organizations from "../../../src/accounts/queries/organizations.ts";
import * as people from "../../../src/accounts/queries/people.ts";
import * as projects from "../../../src/accounts/queries/projects.ts";
import * as standing from "../../../src/accounts/queries/standing.ts";
import * as sessions from "../../../src/accounts/queries/web-sessions.ts";
import * as workingKeys from "../../../src/accounts/queries/working-keys.ts";
import * as ofAccounts from "../../../src/accounts/tables.ts";
import * as backups from "../../../src/backup/queries.ts";
import * as budgets from "../../../src/billing/queries/budgets.ts";
import * as books from "../../../src/billing/queries/ledger.ts";
import * as priceLists from "../../../src/billing/queries/price-lists.ts";
import * as usage from "../../../src/billing/queries/usage-hours.ts";
import * as ofBilling from "../../../src/billing/tables.ts";
import * as fleets from "../../../src/fleets/queries.ts";
import * as ofHub from "../../../src/hub/tables.ts";
import * as judgements from "../../../src/kernel/db/cached-judgements.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import * as datasetUploads from "../../../src/kernel/db/dataset-uploads.ts";
import * as datasets from "../../../src/kernel/db/datasets.ts";
import * as deletedRows from "../../../src/kernel/db/deleted-rows.ts";
import * as endpoints from "../../../src/kernel/db/endpoints.ts";
import * as idempotency from "../../../src/kernel/db/idempotency-keys.ts";
import * as page from "../../../src/kernel/db/page.ts";
import * as past from "../../../src/kernel/db/past-runs.ts";
import * as restoredRuns from "../../../src/kernel/db/restored-runs.ts";
import * as runs from "../../../src/kernel/db/runs.ts";
import * as tables from "../../../src/kernel/db/schema.ts";
import * as schemaLevel from "../../../src/kernel/db/schema-level.ts";
import { inOrganization, inProject } from "../../../src/kernel/db/scoped.ts";
import * as seals from "../../../src/kernel/db/seals.ts";
import * as secrets from "../../../src/kernel/db/secrets.ts";
import * as stored from "../../../src/kernel/db/stored-bytes.ts";
import * as totals from "../../../src/kernel/db/totals.ts";
import * as trainerTokens from "../../../src/kernel/db/trainer-tokens.ts";
import * as used from "../../../src/kernel/db/used-versions.ts";
import * as operator from "../../../src/operator/queries.ts";
import * as deletions from "../../../src/retention/deletion-queries.ts";
import * as retention from "../../../src/retention/expiry-queries.ts";
import * as owners from "../../../src/retention/owner-queries.ts";
import * as reviews from "../../../src/reviews/queries.ts";
import * as ofReviews from "../../../src/reviews/tables.ts";
import * as reportLinks from "../../../src/sharing/queries.ts";
import * as ofSharing from "../../../src/sharing/tables.ts";
import "../../../src/slices.ts";
import * as metrics from "../../../src/telemetry/queries.ts";
import * as triggers from "../../../src/triggers/queries.ts";
import * as ofTriggers from "../../../src/triggers/tables.ts";
import * as webhooks from "../../../src/webhooks/queries.ts";
import { IN_REACH } from "../../accounts/query-cases.ts";
import { endpointRow } from "../http/run-rows.ts";
import { CASES, newSecret, OF_ORGANIZATION, type Reach } from "./cases.ts";
import { DELETION_CASES, DELETIONS_IN_REACH, DELETIONS_OF_ORGANIZATION } from "./deletion-cases.ts";
import { type NotedStatement, notingDatabase, OF_TENANTS, ownedRows, type Tenant, threeTenants } from "./tenants.ts";

const FUNCTIONS: Readonly<Record<string, unknown>> = {
  ...{ ...datasets, ...endpoints, ...fleets, ...idempotency, ...judgements, ...keys, ...page, ...runs, ...secrets },
  ...{ ...apiKeys, ...invitations, ...organizations, ...people, ...projects, ...standing, ...triggers },
  ...{ ...trainerTokens, ...budgets, ...books, ...metrics, ...totals, ...past, ...priceLists, ...seals, ...usage },
  ...{ ...deletedRows, ...deletions, ...stored, ...used, ...owners, ...retention, ...schemaLevel, ...webhooks },
  ...reviews,
  ...{ ...reportLinks, ...sessions, ...workingKeys, ...datasetUploads, ...backups, ...operator, ...restoredRuns },
};

/** These give a request its scope, or are for operators; an inserted row names its organisation itself. */
const WITHOUT_SCOPE = [
  ...["findKey", "findTrainerToken", "findInvitationByHash", "membershipOf", "personWhoProved"],
  ...["findAnyOrganization", "listOrganizations", "insertFirstOrganization", "insertOrganization"],
  ...["countUnfinishedRuns", "readTotals", "listEndpointsInUse", "addTotal", "numberForOrganization"],
  ...["findSession", "findSignInCode", "findSharedRun", "takeSilentRuns", "findFoundedWith"],
  // A backup has the rows of everybody.
  "hasOrganizations",
  // So does a drain.
  "listUnfinishedRuns",
  ...["getAnyDeletion", "sealsBehind", "pricesFrom", "findPriceList", "insertPriceList", "triggerAnywhere"],
];

const PROJECT_CASES = { ...CASES, ...DELETION_CASES };
const ORGANIZATION_CASES = { ...OF_ORGANIZATION, ...DELETIONS_OF_ORGANIZATION };
/** For these, another project of the same organisation is a stranger too. */
const REACH_CASES = { ...IN_REACH, ...DELETIONS_IN_REACH };
/** These count, so tenants with equally many rows get the same answer. */
const ALIKE = ["countRowsOfProject", "hasToExpire", "pastRuns", "storedIn", "publishedVersionsUsed"];
/** These read the row of the project, or count the runs of its organisation. */
const OF_ORGANIZATION_TOO = [
  ...["insertRun", "insertDataset", "insertEndpoint", "insertSecret", "insertTrigger", "insertWebhook", "insertOnce"],
  ...[
    "insertWithin",
    "findStoredRuns",
    "restoreRun",
    "insertFleet",
    "insertReplica",
    "insertReportLink",
    "insertReview",
    "insertUpload",
    "insertUploaded",
  ],
  ...["retentionOf", "countRowsOfProject", "deleteRowsOfProject"],
];

test("every function of src/kernel/db that takes a database is called below, or gives a request its scope", () => {
  const takingOne = Object.entries(FUNCTIONS).filter(([, one]) =>
    /^(async )?(function )?\w+\(database\b/.test(String(one)),
  );
  expect(takingOne.map(([name]) => name).sort()).toEqual(
    [...Object.keys({ ...PROJECT_CASES, ...ORGANIZATION_CASES, ...REACH_CASES }), ...WITHOUT_SCOPE].sort(),
  );
});

const ofProject = "%s reads and changes its owner's rows, and nobody else's";
test.each(Object.entries(PROJECT_CASES))(ofProject, async (name, ask) => {
  const [owner, ...strangers] = await threeTenants();
  const before = await ownedRows(owner);
  const answers = new Set<string>();
  for (const stranger of strangers) {
    const { database, statements } = notingDatabase();
    const answer = JSON.stringify(await ask(database, stranger.scope, owner.mark)) ?? "";
    expect(answer).not.toContain(owner.mark);
    answers.add(answer);
    expect(await ownedRows(owner)).toEqual(before);
    expect(statements).not.toEqual([]);
    const limit = OF_ORGANIZATION_TOO.includes(name) ? BY_ORGANIZATION : BY_PROJECT;
    for (const statement of statements) expect(unlimited(statement, stranger, limit)).toEqual([]);
    expect(statements.filter(isMisplaced)).toEqual([]);
  }
  const answer = JSON.stringify(await ask(databaseOf(env), owner.scope, owner.mark)) ?? "";
  const changed = JSON.stringify(await ownedRows(owner)) !== JSON.stringify(before);
  expect(changed || !answers.has(answer) || ALIKE.includes(name)).toBe(true);
});

test.each(Object.entries({ ...ORGANIZATION_CASES, ...REACH_CASES }))(
  "%s is limited to its owner",
  async (name, ask) => {
    const [owner, beside, far] = await threeTenants();
    const before = await ownedRows(owner);
    const answers = new Set<string>();
    const strangers: Reach[] = [far.scope, { ...far.scope, projectId: null }];
    if (name in REACH_CASES) strangers.push(beside.scope);
    for (const stranger of strangers) {
      const { database, statements } = notingDatabase();
      const answer = JSON.stringify(await ask(database, stranger, owner.mark)) ?? "";
      expect(answer).not.toContain(owner.mark);
      answers.add(answer);
      expect(await ownedRows(owner)).toEqual(before);
      expect(statements).not.toEqual([]);
      for (const { values } of statements) expect(values).toContain(stranger.orgId);
      expect(statements.filter(isMisplaced)).toEqual([]);
    }
    const answer = JSON.stringify(await ask(databaseOf(env), { ...owner.scope, projectId: null }, owner.mark)) ?? "";
    const changed = JSON.stringify(await ownedRows(owner)) !== JSON.stringify(before);
    expect(changed || !answers.has(answer)).toBe(true);
  },
);

/** Only the tables of published environments are in the first D1 database for everybody. */
function isMisplaced({ database, text }: NotedStatement): boolean {
  return database !== (/"hub_(?:owners|environments|versions|tags)"/.test(text) ? 0 : OF_TENANTS);
}

/** `paid_by` has the id of a project, too. */
const BY_PROJECT = /"org_id" = \? and (?:"\w+"\.)?"(?:project_id|paid_by)" = \?/g;
const BY_ORGANIZATION = /"org_id" = \?/g;

/** The tables of the statement that are not limited to the tenant, and those that it names outside the schema. */
function unlimited({ text, values }: NotedStatement, { scope }: Tenant, limit: RegExp): string[] {
  const tableNames = /\b(?:from|join|update|into)\s+(?!json_each\()"?(\w+)"?/g;
  const named = [...text.matchAll(tableNames)].map(([, name = ""]) => name);
  const written = /^insert into "\w+" \([^)]*"org_id", "project_id"/.test(text) ? 1 : 0;
  const limited = [...text.matchAll(limit)].length;
  const own = values.filter((value) => value === scope.orgId).length;
  return own === written + limited ? named.slice(own) : [...named, "with another's id"];
}

const IN_PROJECT = [
  ...[ofAccounts.apiKeys, tables.datasets, tables.deletions, tables.endpoints, tables.idempotencyKeys],
  ...[tables.cachedJudgements, tables.runs, tables.secrets, tables.trainerTokens, ofTriggers.triggers],
  ...[ofAccounts.webSessions, ofAccounts.signInCodes, ofSharing.reportLinks, tables.datasetUploads, ofReviews.reviews],
];
const IN_ORGANIZATION = [
  ...[ofAccounts.apiKeys, ofBilling.budgets, tables.deletions, ofAccounts.invitations, ofAccounts.members],
  ...[tables.organizations, tables.projects, ofAccounts.webSessions, ofAccounts.signInCodes],
];

test("statements about any table of a project affect only the rows of that project", async () => {
  const [owner, beside, far] = await threeTenants();
  const before = await Promise.all([beside, far].map(ownedRows));
  const project = inProject(databaseOf(env), owner.scope);
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

test("statements about any table of an organisation affect the rows of all its projects and no others", async () => {
  const [owner, beside, far] = await threeTenants();
  const before = await ownedRows(far);
  const organization = inOrganization(databaseOf(env), owner.scope.orgId);
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
  const { runs, endpoints } = tables;
  const { members, people } = ofAccounts;
  const pairs = { run: runs.id, endpoint: endpoints.id };
  const any = sql`1 = 1`;
  const joined = await inProject(databaseOf(env), owner.scope).joined(pairs, [runs, endpoints], any);
  expect(joined.length).toBeGreaterThan(0);
  expect(JSON.stringify(joined)).not.toMatch(new RegExp(`${beside.mark}|${far.mark}`));
  const organization = inOrganization(databaseOf(env), owner.scope.orgId);
  const known = await organization.joined({ id: people.id }, [members, people], eq(people.id, members.person_id));
  expect(known.map(({ id }) => id).sort()).toEqual([`per_${owner.mark}`, `per_${beside.mark}`].sort());
});

test("an expression that names a table directly is refused, wherever it is used", async () => {
  const [{ scope }] = await threeTenants();
  const project = inProject(databaseOf(env), scope);
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

test("statements about rows of two D1 databases are refused", async () => {
  const [{ scope }] = await threeTenants();
  const { runs, secrets } = tables;
  const { hubGrants, hubVersions } = ofHub;
  const elsewhere = { ...scope, orgId: `org_${crypto.randomUUID()}` };
  const [project, other] = [inProject(databaseOf(env), scope), inProject(databaseOf(env), elsewhere)];
  const statement = "a statement is for several D1 databases";
  expect(() => project.select(secrets, exists(other.select(runs)))).toThrow(statement);
  expect(() => project.insertIf(exists(other.select(runs)), secrets, newSecret())).toThrow(statement);
  expect(() => project.update(secrets, { name: sql`${other.columns({ id: runs.id }, runs)}` })).toThrow(statement);
  expect(() => project.select(secrets, exists(project.select(hubVersions)))).toThrow(statement);
  expect(() => project.joined({ id: runs.id }, [runs, hubVersions], sql`1 = 1`)).toThrow(statement);
  expect(() => project.batch([project.select(runs), other.select(runs)])).toThrow("a batch has statements for several");
  expect(() => project.batch([project.select(hubGrants), project.select(hubVersions)])).toThrow(
    "a batch has statements",
  );
  expect(await project.batch([project.select(hubGrants), project.select(runs)])).toHaveLength(2);
});

test("batches returns the results in the order of the statements, whichever D1 database each is for", async () => {
  const [{ scope }] = await threeTenants();
  const project = inProject(databaseOf(env), scope);
  const numberOf = (table: typeof tables.runs | typeof ofHub.hubVersions) => project.columns({ n: count() }, table);
  const [none, runs, again] = await project.batches([
    numberOf(ofHub.hubVersions),
    numberOf(tables.runs),
    numberOf(ofHub.hubVersions),
  ]);
  expect([none, runs, again]).toEqual([[{ n: 0 }], [{ n: 3 }], [{ n: 0 }]]);
  expect(await project.batches([])).toEqual([]);
});

test("a conditional insert writes the same values as a plain insert", async () => {
  const [{ scope }] = await threeTenants();
  const project = inProject(databaseOf(env), scope);
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
