/** The client against the list of routes: each has a method, and none is made up. */
import { expect, test } from "vitest";
import type { RollcallClient } from "../../src/sdk/client.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { collect, recorded } from "./recording-fetch.ts";

const FEES = { rollout_micros: 1, thousand_turns_micros: 1, scoring_micros: 1, push_micros: 1, gb_day_micros: 1 };

const CALLS: Readonly<Record<string, (client: RollcallClient) => Promise<unknown>>> = {
  createRun: (client) => client.createRun({ environment: "e", model: "m", endpoint: "qwen" }),
  listRuns: (client) => client.listRuns(),
  getRun: (client) => client.getRun("x/y"),
  cancelRun: (client) => client.cancelRun("x/y"),
  pauseRun: (client) => client.pauseRun("x/y"),
  resumeRun: (client) => client.resumeRun("x/y"),
  updateRun: (client) => client.updateRun("x/y", { max_concurrent: 4 }),
  retryRun: (client) => client.retryRun("x/y"),
  releaseLostCalls: (client) => client.releaseLostCalls("x/y"),
  rescoreRun: (client) => client.rescoreRun("x/y"),
  auditRun: (client) => client.auditRun("x/y"),
  compareRuns: (client) => client.compareRuns("x/y", { baseline: "b" }),
  streamEvents: (client) => collect(client.events("x/y")),
  listResults: (client) => collect(client.results("x/y")),
  listRollouts: (client) => client.listRollouts("x/y"),
  listGroups: (client) => client.listGroups("x/y"),
  getGroup: (client) => client.getGroup("x/y", 3),
  getHistogram: (client) => client.histogram("x/y"),
  exportRun: (client) => collect(client.exportRun("x/y")),
  createReportLink: (client) => client.createReportLink("x/y", { expires_in_s: 60 }),
  listReportLinks: (client) => client.listReportLinks("x/y"),
  deleteReportLink: (client) => client.deleteReportLink("x/y"),
  getSharedReport: (client) => client.sharedReport("x/y"),
  createSignInCode: (client) => client.createSignInCode(),
  createSession: (client) => client.signIn({ code: "c" }),
  deleteSession: (client) => client.signOut(),
  listSessions: (client) => client.listSessions(),
  revokeSession: (client) => client.revokeSession("x/y"),
  listMetrics: (client) => client.runMetrics("x/y", { after_step: 1 }),
  rotateTrainerToken: (client) => client.rotateTrainerToken("x/y"),
  getRollout: (client) => client.getRollout("x/y"),
  getRolloutHead: (client) => client.getRolloutHead("x/y"),
  listTurns: (client) => client.listTurns("x/y", { before: 4 }),
  getTurn: (client) => client.getTurn("x/y", 0),
  getTurnTokens: (client) => client.getTurnTokens("x/y", 0, { after: 2 }),
  getOutline: (client) => client.getOutline("x/y"),
  cancelRollout: (client) => client.cancelRollout("x/y"),
  forkRollout: (client) => client.forkRollout("x/y", { turn: 0 }),
  listEnvironments: (client) => client.environments(),
  getEnvironment: (client) => client.environment("x/y"),
  createDataset: (client) => client.createDataset("{}"),
  listDatasets: (client) => client.listDatasets(),
  getDataset: (client) => client.getDataset("x/y"),
  listDatasetRows: (client) => collect(client.datasetRows("x/y")),
  deleteDataset: (client) => client.deleteDataset("x/y"),
  createEndpoint: (client) => client.createEndpoint({ name: "n", base_url: "http://x/v1" }),
  listEndpoints: (client) => client.listEndpoints(),
  getEndpoint: (client) => client.getEndpoint("x/y"),
  updateEndpoint: (client) => client.updateEndpoint("x/y", { api_key: null }),
  deleteEndpoint: (client) => client.deleteEndpoint("x/y"),
  probeEndpoint: (client) => client.probeEndpoint("x/y"),
  createFleet: (client) => client.createFleet({ name: "n" }),
  listFleets: (client) => client.listFleets(),
  getFleet: (client) => client.getFleet("x/y"),
  updateFleet: (client) => client.updateFleet("x/y", { prices: null }),
  deleteFleet: (client) => client.deleteFleet("x/y"),
  addReplica: (client) => client.addReplica("x/y", { name: "n", base_url: "http://x/v1" }),
  listReplicas: (client) => client.listReplicas("x/y"),
  getReplica: (client) => client.getReplica("x/y", "x/y"),
  updateReplica: (client) => client.updateReplica("x/y", "x/y", { draining: true }),
  removeReplica: (client) => client.removeReplica("x/y", "x/y"),
  probeReplica: (client) => client.probeReplica("x/y", "x/y"),
  resealValues: (client) => client.reseal(),
  createSecret: (client) => client.createSecret({ name: "N", value: "v" }),
  listSecrets: (client) => client.listSecrets(),
  getSecret: (client) => client.getSecret("x/y"),
  createWebhookEndpoint: (client) => client.createWebhookEndpoint({ url: "https://x/in" }),
  listWebhookEndpoints: (client) => client.listWebhookEndpoints(),
  getWebhookEndpoint: (client) => client.getWebhookEndpoint("x/y"),
  updateWebhookEndpoint: (client) => client.updateWebhookEndpoint("x/y", { disabled: false }),
  deleteWebhookEndpoint: (client) => client.deleteWebhookEndpoint("x/y"),
  rotateWebhookSecret: (client) => client.rotateWebhookSecret("x/y"),
  listWebhookDeliveries: (client) => client.listWebhookDeliveries("x/y", { state: "failed" }),
  replayWebhookDelivery: (client) => client.replayWebhookDelivery("x/y", "x/y"),
  replayWebhookDeliveries: (client) => client.replayWebhookDeliveries("x/y", { after: 1 }),
  testWebhookEndpoint: (client) => client.testWebhookEndpoint("x/y"),
  updateSecret: (client) => client.updateSecret("x/y", { value: "v" }),
  createTrigger: (client) => client.createTrigger({ name: "n", verify: { scheme: "standard" }, run: {} }),
  listTriggers: (client) => client.listTriggers(),
  getTrigger: (client) => client.getTrigger("x/y"),
  updateTrigger: (client) => client.updateTrigger("x/y", { disabled: true }),
  deleteTrigger: (client) => client.deleteTrigger("x/y"),
  listTriggerDeliveries: (client) => client.listTriggerDeliveries("x/y"),
  testTrigger: (client) => client.testTrigger("x/y", { payload: {} }),
  whoAmI: (client) => client.whoAmI(),
  createFirstOrganization: (client) => client.bootstrap({ name: "n" }),
  getOrganization: (client) => client.getOrganization(),
  updateOrganization: (client) => client.updateOrganization({ name: "n" }),
  createOrganization: (client) => client.createOrganization({ name: "n" }),
  listOrganizations: (client) => client.listOrganizations(),
  updateLimits: (client) => client.updateLimits("x/y", { runs_in_flight: null }),
  listAuditLog: (client) => client.listAuditLog({ who: "w" }),
  previewRun: (client) => client.previewRun({ kind: "eval", environment: "e", model: "m", endpoint: "x" }),
  getUsage: (client) => client.getUsage({ group_by: ["model"] }),
  getUsageCsv: (client) => client.usageCsv({ start_time: 0 }),
  listStatements: (client) => client.listStatements(),
  getStatement: (client) => client.getStatement("x/y"),
  getStatementCsv: (client) => client.statementCsv("x/y"),
  createProject: (client) => client.createProject({ name: "n" }),
  listProjects: (client) => client.listProjects(),
  getProject: (client) => client.getProject("x/y"),
  updateProject: (client) => client.updateProject("x/y", { name: "n" }),
  createApiKey: (client) => client.createKey({ name: "n", scopes: ["runs:read"] }),
  listApiKeys: (client) => client.listKeys(),
  getApiKey: (client) => client.getKey("x/y"),
  updateApiKey: (client) => client.updateKey("x/y", { name: "n" }),
  rotateApiKey: (client) => client.rotateKey("x/y"),
  revokeApiKey: (client) => client.revokeKey("x/y"),
  listPeople: (client) => client.listPeople(),
  updatePerson: (client) => client.updatePerson("x/y", { role: "viewer" }),
  deletePerson: (client) => client.deletePerson("x/y"),
  createInvitation: (client) => client.createInvitation({ email: "a@b.example", role: "viewer" }),
  listInvitations: (client) => client.listInvitations(),
  acceptInvitation: (client) => client.acceptInvitation({ token: "rki_x" }),
  deleteInvitation: (client) => client.deleteInvitation("x/y"),
  deleteRun: (client) => client.deleteRun("x/y"),
  listDeletions: (client) => client.listDeletions(),
  getDeletion: (client) => client.getDeletion("x/y"),
  deleteProject: (client) => client.deleteProject("x/y"),
  deleteOrganization: (client) => client.deleteOrganization("n"),
  listPrices: (client) => client.listPrices({ version: "2026-11" }),
  createPriceList: (client) => client.createPriceList({ version: "v", effective_from: 0, fees: FEES }),
  getBalance: (client) => client.getBalance(),
  listLedgerEntries: (client) => client.listLedgerEntries({ kind: "top_up" }),
  verifyLedger: (client) => client.verifyLedger({ organization: "o" }),
  auditCharges: (client) => client.auditCharges("x/y", { after: 2 }),
  createTopUp: (client) => client.createTopUp({ organization: "o", amount_micros: 1 }),
  createAdjustment: (client) => {
    return client.createAdjustment({ organization: "o", kind: "refund", amount_micros: -1, source: "s", note: "n" });
  },
  createBudget: (client) => client.createBudget({ target_kind: "organization", limit_micros: 1 }),
  listBudgets: (client) => client.listBudgets(),
  getBudget: (client) => client.getBudget("x/y"),
  updateBudget: (client) => client.updateBudget("x/y", { limit_micros: 2 }),
  deleteBudget: (client) => client.deleteBudget("x/y"),
  createCheckout: (client) => client.createCheckout({ amount_micros: 500_000, success_url: "https://x.example" }),
  deleteSecret: (client) => client.deleteSecret("x/y"),
};

function answer(path: string): Response {
  if (path.endsWith("/events")) return new Response(null, { status: 204 });
  if (/\/(rows|results|export)$/.test(path)) return new Response("");
  return Response.json({ data: [] });
}

test("the client has a method for every route of /v1 but those of a trainer, which has a client of its own, and Stripe's", () => {
  const theirs = ["receiveStripeEvent"];
  const ours = OPERATIONS.filter(({ id, route, trainer }) => / \/v1\//.test(route) && !trainer && !theirs.includes(id));
  const routes = ours.map(({ id }) => id);
  expect(Object.keys(CALLS).sort()).toEqual(routes.sort());
});

test.each(Object.entries(CALLS))("%s asks its route, as its route wants to be asked", async (id, call) => {
  const operation = OPERATIONS.find((known) => known.id === id);
  const { client, asked } = recorded(({ path }) => answer(path));
  await call(client);
  expect(asked.length).toBe(1);
  const [request] = asked;
  const [method = "", route = ""] = operation?.route.split(" ") ?? [];
  const path = route
    .replaceAll(/\{(id|month|msg|replica)\}/g, "x%2Fy")
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
