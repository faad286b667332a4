/** Calls each function of src/kernel/db for a project or an organisation, for the rows of the tenant with the mark. */
import { eq, sql } from "drizzle-orm";
import * as budgets from "../../../src/billing/queries/budgets.ts";
import * as books from "../../../src/billing/queries/ledger.ts";
import * as usage from "../../../src/billing/queries/usage-hours.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import * as judgements from "../../../src/kernel/db/cached-judgements.ts";
import type { Database } from "../../../src/kernel/db/database.ts";
import * as datasetUploads from "../../../src/kernel/db/dataset-uploads.ts";
import * as datasets from "../../../src/kernel/db/datasets.ts";
import * as endpoints from "../../../src/kernel/db/endpoints.ts";
import * as idempotency from "../../../src/kernel/db/idempotency-keys.ts";
import * as past from "../../../src/kernel/db/past-runs.ts";
import * as restoredRuns from "../../../src/kernel/db/restored-runs.ts";
import * as runs from "../../../src/kernel/db/runs.ts";
import * as tables from "../../../src/kernel/db/schema.ts";
import * as seals from "../../../src/kernel/db/seals.ts";
import * as secrets from "../../../src/kernel/db/secrets.ts";
import * as trainerTokens from "../../../src/kernel/db/trainer-tokens.ts";
import * as reviews from "../../../src/reviews/queries.ts";
import * as reportLinks from "../../../src/sharing/queries.ts";
import * as triggers from "../../../src/triggers/queries.ts";
import * as webhooks from "../../../src/webhooks/queries.ts";
import { ACCOUNT_CASES } from "../../accounts/query-cases.ts";
import { FLEET_CASES } from "../../fleets/query-cases.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";
import { linkRow, REVIEWED, reviewRow, TRIGGER, webhookRow, webhookSecretRow } from "./tenants.ts";

/** Queries in this scope for the rows of the tenant with the mark, or adds rows to them. */
export type Case = (database: Database, scope: Scope, mark: string) => unknown;

const FIRST = { after: null, limit: 10, order: "asc" } as const;
const ANY_RUN = { ...FIRST, kind: null, status: null, environment: null, metadata: {}, model: null, search: null };
const ANY_HOUR = { from: 0, to: 9_999_999_999, width: 3600, groups: ["key"], only: { model: "m" }, limit: 10 } as const;
const at = { created_at: 2000 };
export const newSecret = () => ({
  id: crypto.randomUUID(),
  name: "new",
  sealed_value: "sealed",
  ...at,
  updated_at: 2000,
});

export const CASES: Readonly<Record<string, Case>> = {
  pastRuns: (d1, scope) => past.pastRuns(d1, scope, { environment: "gsm8k", model: "m", limit: 10 }),
  runsOfEnvironment: (d1, scope) => past.runsOfEnvironment(d1, scope, { id: "gsm8k", limit: 10 }),
  findDataset: async (d1, scope, mark) => [
    await datasets.findDataset(d1, scope, { id: `ds_${mark}` }),
    await datasets.findDataset(d1, scope, { name: "name" }),
  ],
  listDatasets: (d1, scope) => datasets.listDatasets(d1, scope, FIRST),
  insertDataset: (d1, scope) => {
    const row = { id: crypto.randomUUID(), name: "new", rows: 1, bytes: 1, sha256: "s", environment: null, ...at };
    return datasets.insertDataset(d1, scope, row, null);
  },
  findUpload: (d1, scope, mark) => datasetUploads.findUpload(d1, scope, `up_${mark}`),
  listUploads: (d1, scope) => datasetUploads.listUploads(d1, scope, FIRST, { now: 2000 }),
  insertUpload: (d1, scope) => {
    const said = { name: null, environment: null, environment_args: {}, bytes: null, sha256: null };
    return datasetUploads.insertUpload(d1, scope, { id: crypto.randomUUID(), ...said, dataset_id: null, ...at }, null);
  },
  insertUploaded: (d1, scope, mark) => {
    const row = { id: crypto.randomUUID(), name: null, rows: 1, bytes: 1, sha256: "s", environment: null, ...at };
    return datasetUploads.insertUploaded(d1, scope, `up_${mark}`, row);
  },
  deleteUpload: (d1, scope, mark) => datasetUploads.deleteUpload(d1, scope, `up_${mark}`),
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
  insertEndpoint: (d1, scope) => endpoints.insertEndpoint(d1, scope, { ...endpointRow(), name: "new" }, null),
  updateEndpoint: (d1, scope, mark) =>
    endpoints.updateEndpoint(d1, scope, endpointRow({ id: `ep_${mark}` }), { rpm: 7 }),
  keepRefused: (d1, scope, mark) =>
    endpoints.keepRefused(d1, scope, { id: `ep_${mark}`, base_url: endpointRow().base_url, name: "tools.strict" }),
  deleteEndpoint: async (d1, scope, mark) => [
    await endpoints.deleteEndpoint(d1, scope, `ep_${mark}`, 3000),
    await endpoints.deleteEndpoint(d1, scope, `ep-unused_${mark}`, 3000),
  ],
  ...FLEET_CASES,
  unfinishedRuns: (d1, scope, mark) => runs.unfinishedRuns(d1, scope, eq(tables.runs.endpoint_id, `ep_${mark}`)),
  trainingOn: (d1, scope, mark) => runs.trainingOn(d1, scope, `fl_${mark}`),
  recall: (d1, scope) => idempotency.recall(d1, scope, "createSecret", "k"),
  insertOnce: (d1, scope) => {
    const made = { operation: "createSecret", key: "k2", request_hash: "h", resource_id: "sec_new", ...at };
    return idempotency.insertOnce(d1, scope, tables.secrets, newSecret(), made);
  },
  insertWithin: (d1, scope) => idempotency.insertWithin(d1, scope, tables.secrets, newSecret(), null, { atMost: 9 }),
  findJudgements: async (d1, scope) => [...(await judgements.findJudgements(d1, scope, ["k"]))],
  keepJudgement: (d1, scope) =>
    judgements.keepJudgement(d1, scope, { key: "k2", verdict: { value: 1, reason: "" }, ...at }),
  replaceTrainerToken: (d1, scope, mark) =>
    trainerTokens.replaceTrainerToken(d1, scope, { hash: crypto.randomUUID(), run_id: `run_${mark}`, ...at }, 9000),
  insertRun: (d1, scope) => {
    const endpoint = endpointRow();
    return runs.insertRun(d1, scope, runRow(endpoint), endpoint, [endpointRow()]);
  },
  findStoredRuns: (d1, scope, mark) => restoredRuns.findStoredRuns(d1, scope, [`run_${mark}`]),
  restoreRun: (d1, scope) => {
    const endpoint = endpointRow();
    return restoredRuns.restoreRun(d1, scope, runRow(endpoint, { idempotency_key: "k" }), [endpoint]);
  },
  findBegunRun: (d1, scope, mark) => restoredRuns.findBegunRun(d1, scope, `run_${mark}`),
  getRun: (d1, scope, mark) => runs.getRun(d1, scope, `run_${mark}`),
  findRunByIdempotencyKey: (d1, scope) => runs.findRunByIdempotencyKey(d1, scope, "k"),
  listRuns: async (d1, scope) => [
    await runs.listRuns(d1, scope, { ...ANY_RUN, sort: "created" }),
    await runs.listRuns(d1, scope, { ...ANY_RUN, search: "run_", sort: "cost" }),
  ],
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
  replaceSeal: async (d1, scope, mark) => {
    for (const [kind, id, sealed] of [
      ["secret", `sec_${mark}`, mark],
      ["endpoint", `ep_${mark}`, "k1.iv.sealed"],
      ["replica", `rp_${mark}`, mark],
      ["replica_control", `rp_${mark}`, mark],
      ["push_secret", `run_${mark}`, mark],
      ["webhook_secret", `whs_${mark}`, mark],
      ["trigger", `tr_${mark}`, mark],
    ] as const) {
      await seals.replaceSeal(d1, { kind, scope, id, sealed }, "sealed anew");
    }
  },
  findTrigger: async (d1, scope, mark) => [
    await triggers.findTrigger(d1, scope, `tr_${mark}`),
    await triggers.findTrigger(d1, scope, "name"),
  ],
  getTrigger: (d1, scope, mark) => triggers.getTrigger(d1, scope, `tr_${mark}`),
  listTriggers: (d1, scope) => triggers.listTriggers(d1, scope, FIRST),
  someTriggers: (d1, scope) => triggers.someTriggers(d1, scope, 10),
  insertTrigger: (d1, scope) => {
    const row = { ...TRIGGER, id: crypto.randomUUID(), name: "new", sealed_secret: "sealed" };
    return triggers.insertTrigger(d1, scope, row, null);
  },
  updateTrigger: (d1, scope, mark) => triggers.updateTrigger(d1, scope, `tr_${mark}`, { updated_at: 3000 }),
  deleteTrigger: (d1, scope, mark) => triggers.deleteTrigger(d1, scope, `tr_${mark}`),
  sealedPushSecret: (d1, scope, mark) => seals.sealedPushSecret(d1, scope, `run_${mark}`),
  deleteSecret: (d1, scope, mark) => secrets.deleteSecret(d1, scope, `sec_${mark}`),
  findWebhook: (d1, scope, mark) => webhooks.findWebhook(d1, scope, `whe_${mark}`),
  listWebhooks: (d1, scope) => webhooks.listWebhooks(d1, scope, FIRST),
  webhooksListening: (d1, scope) => webhooks.webhooksListening(d1, scope),
  webhooksOfProject: (d1, scope) => webhooks.webhooksOfProject(d1, scope, 9),
  insertWebhook: (d1, scope) => {
    const webhook = webhookRow(crypto.randomUUID());
    return webhooks.insertWebhook(
      d1,
      scope,
      { webhook, secret: webhookSecretRow(crypto.randomUUID(), webhook.id) },
      null,
    );
  },
  updateWebhook: (d1, scope, mark) => webhooks.updateWebhook(d1, scope, `whe_${mark}`, { description: "other" }),
  disableWebhook: (d1, scope, mark) => webhooks.disableWebhook(d1, scope, `whe_${mark}`, { at: 3000, reason: "r" }),
  secretsOfWebhook: (d1, scope, mark) => webhooks.secretsOfWebhook(d1, scope, `whe_${mark}`, 2000),
  secretEndsOfWebhooks: (d1, scope, mark) => webhooks.secretEndsOfWebhooks(d1, scope, [`whe_${mark}`], 2000),
  rotateWebhookSecret: (d1, scope, mark) => {
    const secret = { ...webhookSecretRow(crypto.randomUUID(), `whe_${mark}`), created_at: 2000 };
    return webhooks.rotateWebhookSecret(d1, scope, { secret, ends: 3000 });
  },
  deleteWebhook: (d1, scope, mark) => webhooks.deleteWebhook(d1, scope, `whe_${mark}`),
  insertReportLink: (d1, scope, mark) => {
    return reportLinks.insertReportLink(d1, scope, linkRow(crypto.randomUUID(), `run_${mark}`), null);
  },
  findReportLink: (d1, scope, mark) => reportLinks.findReportLink(d1, scope, `rl_${mark}`),
  listReportLinks: (d1, scope, mark) => reportLinks.listReportLinks(d1, scope, `run_${mark}`, FIRST),
  deleteReportLink: (d1, scope, mark) => reportLinks.deleteReportLink(d1, scope, `rl_${mark}`),
  dropReportLinks: (d1, scope) => reportLinks.dropReportLinks(d1, scope, 9_000, 10),
  insertReview: (d1, scope, mark) => reviews.insertReview(d1, scope, reviewRow(crypto.randomUUID(), `run_${mark}`)),
  updateReview: (d1, scope, mark) => {
    const own = { rolloutId: `ro_${mark}`, who: "key_1" };
    return reviews.updateReview(d1, scope, own, { ...REVIEWED, note: "other", updated_at: 2000 });
  },
  deleteReview: (d1, scope, mark) => reviews.deleteReview(d1, scope, `ro_${mark}`, "key_1"),
  findReview: (d1, scope, mark) => reviews.findReview(d1, scope, `rev_${mark}`),
  listReviews: (d1, scope, mark) => reviews.listReviews(d1, scope, { runId: `run_${mark}` }, FIRST),
  listReviewMarks: (d1, scope, mark) => reviews.listReviewMarks(d1, scope, `run_${mark}`),
  countReviews: (d1, scope, mark) => reviews.countReviews(d1, scope, [`run_${mark}`]),
  reviewSizes: (d1, scope, mark) => reviews.reviewSizes(d1, scope, [`ro_${mark}`]),
  reviewsOfRollouts: (d1, scope, mark) => reviews.reviewsOfRollouts(d1, scope, [`ro_${mark}`]),
  listReviewValues: (d1, scope, mark) => reviews.listReviewValues(d1, scope, `run_${mark}`, FIRST),
};

/** An organisation, or one project of it. */
export interface Reach {
  readonly orgId: string;
  readonly projectId: string | null;
}
export type OrganizationCase = (database: Database, reach: Reach, mark: string) => unknown;

/** The same for the rows of an organisation; the stranger is another organisation. */
export const OF_ORGANIZATION: Readonly<Record<string, OrganizationCase>> = {
  ...ACCOUNT_CASES,
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
  remember: (d1, { orgId }) => {
    const made = { operation: "createTopUp", key: crypto.randomUUID(), request_hash: "h", resource_id: "n", ...at };
    return idempotency.remember(d1, orgId, made);
  },
  findBudget: (d1, { orgId }, mark) => budgets.findBudget(d1, orgId, `bud_${mark}`),
  listBudgets: (d1, { orgId }) => budgets.listBudgets(d1, orgId, FIRST),
  insertBudget: (d1, { orgId }, mark) => {
    const of = { target_kind: "project", target_id: crypto.randomUUID(), limit_micros: 1 } as const;
    return budgets.insertBudget(
      d1,
      orgId,
      { id: `${mark}-${crypto.randomUUID()}`, ...of, ...at, updated_at: 2000 },
      null,
    );
  },
  updateBudget: (d1, { orgId }, mark) =>
    budgets.updateBudget(d1, orgId, `bud_${mark}`, { limit_micros: 7, updated_at: 3000 }),
  deleteBudget: (d1, { orgId }, mark) => budgets.deleteBudget(d1, orgId, `bud_${mark}`),
  webhooksNaming: (d1, { orgId }) => webhooks.webhooksNaming(d1, orgId, "budget", 10),
  usageBetween: async (d1, { orgId }) => [
    await usage.usageBetween(d1, orgId, { ...ANY_HOUR, projectId: null }),
    await usage.usageBetween(d1, orgId, { ...ANY_HOUR, projectId: "any" }),
  ],
  readTerms: async (d1, { orgId }) => Object.values(await books.readTerms(d1, orgId)),
  writeUsageHours: (d1, { orgId }, mark) => {
    const bucket = { project_id: `pj_${mark}`, hour: 3600, payer: `key_${mark}`, environment: "e", model: "m" };
    return books.writeUsageHours(d1, orgId, [{ ...bucket, kind: "eval", counts: { turns: 7 }, lines: {} }]);
  },
};
