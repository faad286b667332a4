/** Compares the client with the list of routes: each route has a method, and no method is without a route. */
import { expect, test } from "vitest";
import type { RollcallClient } from "../../src/sdk/client.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { collect, recorded } from "./recording-fetch.ts";

const FEES = { rollout_micros: 1, thousand_turns_micros: 1, scoring_micros: 1, push_micros: 1, gb_day_micros: 1 };

const CALLS: Readonly<Record<string, (client: RollcallClient) => Promise<unknown>>> = {
  createRun: (client) => client.runs.create({ environment: "e", model: "m", endpoint: "qwen" }),
  listRuns: (client) => client.runs.list(),
  getRun: (client) => client.runs.get("x/y"),
  cancelRun: (client) => client.runs.cancel("x/y"),
  pauseRun: (client) => client.runs.pause("x/y"),
  resumeRun: (client) => client.runs.resume("x/y"),
  updateRun: (client) => client.runs.update("x/y", { max_concurrent: 4 }),
  retryRun: (client) => client.runs.retry("x/y"),
  releaseLostCalls: (client) => client.runs.releaseLostCalls("x/y"),
  rescoreRun: (client) => client.runs.rescore("x/y"),
  auditRun: (client) => client.runs.audit("x/y"),
  compareRuns: (client) => client.runs.compare("x/y", { baseline: "b" }),
  compareTasks: (client) => client.runs.compareTasks("x/y", { baselines: ["b", "c"] }),
  streamEvents: (client) => collect(client.runs.events("x/y")),
  listResults: (client) => collect(client.runs.results("x/y")),
  listRollouts: (client) => client.rollouts.list("x/y"),
  listGroups: (client) => client.runs.groups.list("x/y"),
  getGroup: (client) => client.runs.groups.get("x/y", 3),
  getHistogram: (client) => client.runs.histogram("x/y"),
  exportRun: (client) => collect(client.runs.export("x/y")),
  putReview: (client) => client.reviews.put("x/y", { mark: "good" }),
  deleteReview: (client) => client.reviews.delete("x/y"),
  listReviews: (client) => client.reviews.list("x/y"),
  listRunReviews: (client) => client.reviews.listOfRun("x/y"),
  listAgreements: (client) => client.runs.agreements(["run_1"]),
  getAgreement: (client) => client.runs.agreement("x/y"),
  createReportLink: (client) => client.reportLinks.create("x/y", { expires_in_s: 60 }),
  listReportLinks: (client) => client.reportLinks.list("x/y"),
  deleteReportLink: (client) => client.reportLinks.delete("x/y"),
  getSharedReport: (client) => client.reportLinks.read("x/y"),
  createSignInCode: (client) => client.sessions.createCode(),
  createSession: (client) => client.sessions.signIn({ code: "c" }),
  deleteSession: (client) => client.sessions.signOut(),
  listSessions: (client) => client.sessions.list(),
  revokeSession: (client) => client.sessions.revoke("x/y"),
  listMetrics: (client) => client.runs.metrics("x/y", { after_step: 1 }),
  rotateTrainerToken: (client) => client.runs.rotateTrainerToken("x/y"),
  getRollout: (client) => client.rollouts.get("x/y"),
  getRolloutHead: (client) => client.rollouts.head("x/y"),
  listTurns: (client) => client.rollouts.turns.list("x/y", { before: 4 }),
  getTurn: (client) => client.rollouts.turns.get("x/y", 0),
  getTurnTokens: (client) => client.rollouts.turns.tokens("x/y", 0, { after: 2 }),
  listJudgeQuestions: (client) => client.rollouts.questions("x/y"),
  getOutline: (client) => client.rollouts.outline("x/y"),
  cancelRollout: (client) => client.rollouts.cancel("x/y"),
  forkRollout: (client) => client.rollouts.fork("x/y", { turn: 0 }),
  leaseRollouts: (client) => client.agents.lease("x/y", { worker: "w" }),
  heartbeatAgent: (client) => client.agents.heartbeat("x/y", { worker: "w", leases: [] }),
  releaseAgent: (client) => client.agents.release("x/y", { worker: "w", leases: [] }),
  createRollout: (client) => client.rollouts.create({ row: {}, model: "m", endpoint: "qwen" }),
  finishRollout: (client) => client.rollouts.finish("x/y", "x%2Fy", { rewards: { solved: 1 } }),
  listEnvironments: (client) => client.environments.list(),
  getEnvironment: (client) => client.environments.get("x/y"),
  publishEnvironment: (client) => client.environments.publish(new Uint8Array(1), { tag: "beta", allowFailing: true }),
  listEnvironmentVersions: (client) => client.environments.versions("x/y"),
  getEnvironmentResults: (client) => client.environments.results("x/y"),
  getEnvironmentPackage: (client) => client.environments.package("x/y"),
  getEnvironmentReadme: (client) => client.environments.readme("x/y"),
  updateEnvironmentVersion: (client) => client.environments.update("x/y", { deprecated: null }),
  moveEnvironmentTag: (client) => client.environments.moveTag("x/y", "x/y", "1.0.0"),
  deleteEnvironmentTag: (client) => client.environments.deleteTag("x/y", "x/y"),
  getEnvironmentGrant: (client) => client.environments.getGrant("x/y"),
  setEnvironmentGrant: (client) => client.environments.setGrant("x/y", ["secret:NAME"]),
  takeDownEnvironmentVersion: (client) => client.environments.takeDown("x/y", "r"),
  createDataset: (client) => client.datasets.upload("{}"),
  listDatasets: (client) => client.datasets.list(),
  getDataset: (client) => client.datasets.get("x/y"),
  listDatasetRows: (client) => collect(client.datasets.rows("x/y")),
  deleteDataset: (client) => client.datasets.delete("x/y"),
  createDatasetUpload: (client) => client.datasetUploads.create({ name: "n" }),
  listDatasetUploads: (client) => client.datasetUploads.list({ sha256: "s" }),
  getDatasetUpload: (client) => client.datasetUploads.get("x/y"),
  putDatasetUploadPart: (client) => client.datasetUploads.putPart("x/y", 3, new Uint8Array(1)),
  completeDatasetUpload: (client) => client.datasetUploads.complete("x/y", 1),
  deleteDatasetUpload: (client) => client.datasetUploads.delete("x/y"),
  createEndpoint: (client) => client.endpoints.create({ name: "n", base_url: "http://x/v1" }),
  listEndpoints: (client) => client.endpoints.list(),
  getEndpoint: (client) => client.endpoints.get("x/y"),
  updateEndpoint: (client) => client.endpoints.update("x/y", { api_key: null }),
  deleteEndpoint: (client) => client.endpoints.delete("x/y"),
  probeEndpoint: (client) => client.endpoints.probe("x/y"),
  createFleet: (client) => client.fleets.create({ name: "n" }),
  listFleets: (client) => client.fleets.list(),
  getFleet: (client) => client.fleets.get("x/y"),
  updateFleet: (client) => client.fleets.update("x/y", { prices: null }),
  deleteFleet: (client) => client.fleets.delete("x/y"),
  addReplica: (client) => client.fleets.replicas.add("x/y", { name: "n", base_url: "http://x/v1" }),
  listReplicas: (client) => client.fleets.replicas.list("x/y"),
  getReplica: (client) => client.fleets.replicas.get("x/y", "x/y"),
  updateReplica: (client) => client.fleets.replicas.update("x/y", "x/y", { draining: true }),
  removeReplica: (client) => client.fleets.replicas.remove("x/y", "x/y"),
  probeReplica: (client) => client.fleets.replicas.probe("x/y", "x/y"),
  resealValues: (client) => client.secrets.reseal(),
  createSecret: (client) => client.secrets.create({ name: "N", value: "v" }),
  listSecrets: (client) => client.secrets.list(),
  getSecret: (client) => client.secrets.get("x/y"),
  createWebhookEndpoint: (client) => client.webhookEndpoints.create({ url: "https://x/in" }),
  listWebhookEndpoints: (client) => client.webhookEndpoints.list(),
  getWebhookEndpoint: (client) => client.webhookEndpoints.get("x/y"),
  updateWebhookEndpoint: (client) => client.webhookEndpoints.update("x/y", { disabled: false }),
  deleteWebhookEndpoint: (client) => client.webhookEndpoints.delete("x/y"),
  rotateWebhookSecret: (client) => client.webhookEndpoints.rotateSecret("x/y"),
  listWebhookDeliveries: (client) => client.webhookEndpoints.deliveries.list("x/y", { state: "failed" }),
  replayWebhookDelivery: (client) => client.webhookEndpoints.deliveries.replay("x/y", "x/y"),
  replayWebhookDeliveries: (client) => client.webhookEndpoints.replay("x/y", { after: 1 }),
  testWebhookEndpoint: (client) => client.webhookEndpoints.test("x/y"),
  updateSecret: (client) => client.secrets.update("x/y", { value: "v" }),
  createTrigger: (client) => client.triggers.create({ name: "n", verify: { scheme: "standard" }, run: {} }),
  listTriggers: (client) => client.triggers.list(),
  getTrigger: (client) => client.triggers.get("x/y"),
  updateTrigger: (client) => client.triggers.update("x/y", { disabled: true }),
  deleteTrigger: (client) => client.triggers.delete("x/y"),
  listTriggerDeliveries: (client) => client.triggers.deliveries.list("x/y"),
  testTrigger: (client) => client.triggers.test("x/y", { payload: {} }),
  whoAmI: (client) => client.whoAmI(),
  createFirstOrganization: (client) => client.organizations.bootstrap({ name: "n" }),
  getOrganization: (client) => client.organization.get(),
  updateOrganization: (client) => client.organization.update({ name: "n" }),
  createOrganization: (client) => client.organizations.create({ name: "n" }),
  listOrganizations: (client) => client.organizations.list(),
  updateLimits: (client) => client.organizations.update("x/y", { limits: { runs_in_flight: null } }),
  listAuditLog: (client) => client.auditLog.list({ who: "w" }),
  previewRun: (client) => client.runs.preview({ kind: "eval", environment: "e", model: "m", endpoint: "x" }),
  getUsage: (client) => client.usage.list({ group_by: ["model"] }),
  getUsageCsv: (client) => client.usage.csv({ start_time: 0 }),
  listStatements: (client) => client.statements.list(),
  getStatement: (client) => client.statements.get("x/y"),
  getStatementCsv: (client) => client.statements.csv("x/y"),
  createProject: (client) => client.projects.create({ name: "n" }),
  listProjects: (client) => client.projects.list(),
  getProject: (client) => client.projects.get("x/y"),
  updateProject: (client) => client.projects.update("x/y", { name: "n" }),
  createApiKey: (client) => client.keys.create({ name: "n", scopes: ["runs:read"] }),
  listApiKeys: (client) => client.keys.list(),
  getApiKey: (client) => client.keys.get("x/y"),
  updateApiKey: (client) => client.keys.update("x/y", { name: "n" }),
  rotateApiKey: (client) => client.keys.rotate("x/y"),
  revokeApiKey: (client) => client.keys.revoke("x/y"),
  listPeople: (client) => client.people.list(),
  updatePerson: (client) => client.people.update("x/y", { role: "viewer" }),
  deletePerson: (client) => client.people.delete("x/y"),
  createInvitation: (client) => client.invitations.create({ email: "a@b.example", role: "viewer" }),
  listInvitations: (client) => client.invitations.list(),
  acceptInvitation: (client) => client.invitations.accept({ token: "rki_x" }),
  deleteInvitation: (client) => client.invitations.delete("x/y"),
  deleteRun: (client) => client.runs.delete("x/y"),
  listDeletions: (client) => client.deletions.list(),
  getDeletion: (client) => client.deletions.get("x/y"),
  deleteProject: (client) => client.projects.delete("x/y"),
  deleteOrganization: (client) => client.organization.delete("n"),
  listPrices: (client) => client.prices.list({ version: "2026-11" }),
  createPriceList: (client) => client.prices.create({ version: "v", effective_from: 0, fees: FEES }),
  getBalance: (client) => client.balance.get(),
  listLedgerEntries: (client) => client.ledger.list({ kind: "top_up" }),
  verifyLedger: (client) => client.ledger.verify({ organization: "o" }),
  auditCharges: (client) => client.runs.auditCharges("x/y", { after: 2 }),
  createTopUp: (client) => client.ledger.topUp({ organization: "o", amount_micros: 1 }),
  createAdjustment: (client) => {
    return client.ledger.adjust({ organization: "o", kind: "refund", amount_micros: -1, source: "s", note: "n" });
  },
  createBudget: (client) => client.budgets.create({ target_kind: "organization", limit_micros: 1 }),
  listBudgets: (client) => client.budgets.list(),
  getBudget: (client) => client.budgets.get("x/y"),
  updateBudget: (client) => client.budgets.update("x/y", { limit_micros: 2 }),
  deleteBudget: (client) => client.budgets.delete("x/y"),
  createCheckout: (client) => client.checkouts.create({ amount_micros: 500_000, success_url: "https://x.example" }),
  deleteSecret: (client) => client.secrets.delete("x/y"),
};

function answer(path: string): Response {
  if (path.endsWith("/events")) return new Response(null, { status: 204 });
  if (/^\/v1\/(datasets|runs)\/.*\/(rows|results|export)$/.test(path)) return new Response("");
  return Response.json({ data: [] });
}

test("the client has a method for every route of /v1, except a trainer's, which have a client of their own, and Stripe's", () => {
  const theirs = ["receiveStripeEvent"];
  const ours = OPERATIONS.filter(({ id, route, trainer }) => / \/v1\//.test(route) && !trainer && !theirs.includes(id));
  const routes = ours.map(({ id }) => id);
  expect(Object.keys(CALLS).sort()).toEqual(routes.sort());
});

test.each(Object.entries(CALLS))("%s calls its route in the right form", async (id, call) => {
  const operation = OPERATIONS.find((known) => known.id === id);
  const { client, asked } = recorded(({ path }) => answer(path));
  await call(client);
  expect(asked.length).toBe(1);
  const [request] = asked;
  const [method = "", route = ""] = operation?.route.split(" ") ?? [];
  const path = route
    .replaceAll(/\{(id|month|msg|name|replica|tag)\}/g, "x%2Fy")
    .replace("{number}", "3")
    .replace("{turn}", "0")
    .replace("{group}", "3");
  expect(`${request?.method} ${request?.path.split("?")[0]}`).toBe(`${method} ${path}`);
  const shown = operation?.proof === undefined ? "rk_test" : "x%2Fy";
  expect(request?.headers.get("authorization")).toBe(`Bearer ${shown}`);
  const type = operation?.body && (operation.body.contentType ?? "application/json");
  const sends = method === "POST" || method === "PATCH" || operation?.body !== undefined;
  expect(request?.headers.get("content-type")).toBe(sends ? (type ?? "application/json") : null);
  expect(request?.headers.has("idempotency-key")).toBe(method === "POST");
});
