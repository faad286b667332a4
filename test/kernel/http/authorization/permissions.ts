/**
 * The permission of each operation, written down by hand, so that a wrong declaration in src/kernel/http is noticed
 * here. `anybody` needs no key and `caller` accepts any key. If several scopes are listed, one of them is enough.
 */
import type { Permission } from "../../../../src/contract/identity.ts";

export const TAKES: Readonly<Record<string, "anybody" | "caller" | readonly Permission[]>> = {
  getHealth: "anybody",
  getReadiness: "anybody",
  getOpenApi: "anybody",
  getDocs: "anybody",
  getJoinPage: "anybody",
  createFirstOrganization: "anybody",
  acceptInvitation: "anybody",
  whoAmI: "caller",
  createSignInCode: "caller",
  createSession: "anybody",
  deleteSession: "caller",
  listSessions: "caller",
  revokeSession: "caller",
  listAuditLog: ["audit:read"],

  getOrganization: ["runs:read"],
  updateOrganization: ["admin"],
  createOrganization: ["operator"],
  listOrganizations: ["operator"],
  updateLimits: ["operator"],
  resealValues: ["operator"],
  scrapeMetrics: ["metrics"],
  createProject: ["admin"],
  listProjects: ["runs:read"],
  getProject: ["runs:read"],
  updateProject: ["admin"],
  createApiKey: ["admin"],
  listApiKeys: ["admin"],
  getApiKey: ["admin"],
  updateApiKey: ["admin"],
  rotateApiKey: ["admin"],
  revokeApiKey: ["admin"],
  listPeople: ["admin"],
  updatePerson: ["admin"],
  deletePerson: ["admin"],
  createInvitation: ["admin"],
  listInvitations: ["admin"],
  deleteInvitation: ["admin"],
  deleteProject: ["admin"],
  deleteOrganization: ["admin"],
  listPrices: "caller",
  createPriceList: ["operator"],
  getBalance: ["billing:read", "operator"],
  listLedgerEntries: ["billing:read"],
  verifyLedger: ["billing:read", "operator"],
  createTopUp: ["operator"],
  createAdjustment: ["operator"],
  createBudget: ["billing:write"],
  listBudgets: ["billing:read"],
  getBudget: ["billing:read"],
  updateBudget: ["billing:write"],
  deleteBudget: ["billing:write"],
  createCheckout: ["billing:write"],
  receiveStripeEvent: "anybody",
  getUsage: ["billing:read"],
  getUsageCsv: ["billing:read"],
  listStatements: ["billing:read"],
  getStatement: ["billing:read"],
  getStatementCsv: ["billing:read"],
  listDeletions: ["runs:read"],
  getDeletion: ["runs:read", "operator"],

  createRun: ["runs:write"],
  previewRun: ["runs:write"],
  listRuns: ["runs:read"],
  getRun: ["runs:read"],
  cancelRun: ["runs:write"],
  deleteRun: ["runs:write"],
  updateRun: ["runs:write"],
  pauseRun: ["runs:write"],
  resumeRun: ["runs:write"],
  retryRun: ["runs:write"],
  releaseLostCalls: ["billing:write"],
  rescoreRun: ["runs:write"],
  auditRun: ["runs:read"],
  auditCharges: ["runs:read"],
  streamEvents: ["runs:read"],
  compareRuns: ["runs:read"],
  compareTasks: ["runs:read"],
  listMetrics: ["runs:read"],
  createReportLink: ["runs:write"],
  listReportLinks: ["runs:read"],
  deleteReportLink: ["runs:write"],
  getSharedReport: "anybody",
  listResults: ["rollouts:read"],
  listRollouts: ["rollouts:read"],
  listGroups: ["rollouts:read"],
  getGroup: ["rollouts:read"],
  getHistogram: ["rollouts:read"],
  exportRun: ["rollouts:read"],
  getRollout: ["rollouts:read"],
  getRolloutHead: ["rollouts:read"],
  listTurns: ["rollouts:read"],
  getTurn: ["rollouts:read"],
  getTurnTokens: ["rollouts:read"],
  listJudgeQuestions: ["rollouts:read"],
  getOutline: ["rollouts:read"],
  cancelRollout: ["rollouts:write"],
  putReview: ["rollouts:write"],
  deleteReview: ["rollouts:write"],
  listReviews: ["rollouts:read"],
  listRunReviews: ["rollouts:read"],
  listAgreements: ["rollouts:read"],
  getAgreement: ["rollouts:read"],
  forkRollout: ["runs:write"],

  registerTrainer: ["trainer"],
  leaseBatch: ["trainer"],
  rotateTrainerToken: ["runs:write"],
  heartbeatLease: ["trainer"],
  ackLease: ["trainer"],
  nackLease: ["trainer"],
  getBatch: ["trainer", "runs:read"],
  getBatchObject: ["trainer", "runs:read"],
  getBatchCredits: ["trainer", "runs:read"],
  streamBatch: ["trainer", "runs:read"],
  reportWeightVersion: ["trainer", "engine"],
  listWeightVersions: ["trainer", "engine", "runs:read"],

  listEnvironments: ["environments:read"],
  getEnvironment: ["environments:read"],
  getEnvironmentResults: ["runs:read"],
  publishEnvironment: ["environments:write"],
  listEnvironmentVersions: ["environments:read"],
  getEnvironmentPackage: ["environments:read"],
  getEnvironmentReadme: ["environments:read"],
  updateEnvironmentVersion: ["environments:write"],
  moveEnvironmentTag: ["environments:write"],
  deleteEnvironmentTag: ["environments:write"],
  getEnvironmentGrant: ["environments:read"],
  setEnvironmentGrant: ["secrets:write"],
  takeDownEnvironmentVersion: ["operator"],
  listPythonProjects: ["environments:read"],
  getPythonProject: ["environments:read"],
  findPythonProject: "anybody",
  getPythonFile: ["environments:read"],
  pingNpm: "anybody",
  logOutNpm: "anybody",
  whoAmINpm: "caller",
  listNpmTags: ["environments:read"],
  listScopedNpmTags: ["environments:read"],
  getNpmPackage: ["environments:read"],
  getScopedNpmPackage: ["environments:read"],
  getNpmTarball: ["environments:read"],
  getScopedNpmTarball: ["environments:read"],
  putNpmPackage: ["environments:write"],
  putScopedNpmPackage: ["environments:write"],
  moveNpmTag: ["environments:write"],
  moveScopedNpmTag: ["environments:write"],
  deleteNpmTag: ["environments:write"],
  deleteScopedNpmTag: ["environments:write"],

  createEndpoint: ["endpoints:write"],
  listEndpoints: ["endpoints:read"],
  getEndpoint: ["endpoints:read"],
  updateEndpoint: ["endpoints:write"],
  deleteEndpoint: ["endpoints:write"],
  probeEndpoint: ["endpoints:write"],
  createFleet: ["endpoints:write"],
  listFleets: ["endpoints:read"],
  getFleet: ["endpoints:read"],
  updateFleet: ["endpoints:write"],
  deleteFleet: ["endpoints:write"],
  addReplica: ["endpoints:write"],
  listReplicas: ["endpoints:read"],
  getReplica: ["endpoints:read"],
  updateReplica: ["endpoints:write"],
  removeReplica: ["endpoints:write"],
  probeReplica: ["endpoints:write"],

  createSecret: ["secrets:write"],
  listSecrets: ["secrets:read"],
  getSecret: ["secrets:read"],
  updateSecret: ["secrets:write"],
  deleteSecret: ["secrets:write"],

  createWebhookEndpoint: ["webhooks:write"],
  listWebhookEndpoints: ["webhooks:read"],
  getWebhookEndpoint: ["webhooks:read"],
  updateWebhookEndpoint: ["webhooks:write"],
  deleteWebhookEndpoint: ["webhooks:write"],
  rotateWebhookSecret: ["webhooks:write"],
  listWebhookDeliveries: ["webhooks:read"],
  replayWebhookDelivery: ["webhooks:write"],
  replayWebhookDeliveries: ["webhooks:write"],
  testWebhookEndpoint: ["webhooks:write"],
  createTrigger: ["triggers:write"],
  listTriggers: ["triggers:read"],
  getTrigger: ["triggers:read"],
  updateTrigger: ["triggers:write"],
  deleteTrigger: ["triggers:write"],
  listTriggerDeliveries: ["triggers:read"],
  testTrigger: ["triggers:write"],
  receiveDelivery: "anybody",

  createRollout: ["runs:write"],
  leaseRollouts: ["runs:write"],
  heartbeatAgent: ["runs:write"],
  releaseAgent: ["runs:write"],
  finishRollout: "anybody",
  callChatCompletions: "anybody",
  callResponses: "anybody",
  callMessages: "anybody",
  countMessageTokens: "anybody",
  listRolloutModels: "anybody",

  createDataset: ["datasets:write"],
  listDatasets: ["datasets:read"],
  getDataset: ["datasets:read"],
  listDatasetRows: ["datasets:read"],
  deleteDataset: ["datasets:write"],
  createDatasetUpload: ["datasets:write"],
  listDatasetUploads: ["datasets:read"],
  getDatasetUpload: ["datasets:read"],
  putDatasetUploadPart: ["datasets:write"],
  completeDatasetUpload: ["datasets:write"],
  deleteDatasetUpload: ["datasets:write"],
};

/** Further scopes that these need: the creator of a trigger must be allowed to start the runs that it starts. */
export const TAKES_TOO: Readonly<Record<string, readonly Permission[]>> = { createTrigger: ["runs:write"] };

/** Operations that accept the token of a run's trainer. */
export const FOR_TRAINERS: readonly string[] = [
  ...["registerTrainer", "leaseBatch", "heartbeatLease", "ackLease", "nackLease"],
  ...["getBatch", "getBatchObject", "getBatchCredits", "streamBatch"],
  ...["reportWeightVersion", "listWeightVersions"],
];

/** Operations that a key of one project may not use. */
export const OF_ALL_PROJECTS: readonly string[] = [
  ...["updateOrganization", "createProject", "listPeople", "updatePerson", "deletePerson"],
  ...["createInvitation", "listInvitations", "deleteInvitation"],
  ...["getBalance", "listLedgerEntries", "verifyLedger", "createCheckout"],
  ...["createBudget", "listBudgets", "getBudget", "updateBudget", "deleteBudget"],
  ...["listStatements", "getStatement", "getStatementCsv"],
  "deleteOrganization",
];

/** Operations about a project that a key of one project may not use. */
export const BY_WHOLE_KEYS: readonly string[] = ["releaseLostCalls"];

/** Operations on things that only their creator can see, and the scopes with which others can. */
export const OTHERS_TAKE: Readonly<Record<string, readonly Permission[]>> = { revokeSession: ["admin"] };

/** Operations that a key of one project may not use on its own project. */
export const NOT_TO_ITS_OWN: readonly string[] = ["deleteProject"];

/** For these, an operator sees the things of any organisation. */
export const SHOWN_TO_OPERATORS: readonly string[] = ["getDeletion"];

/** Operations about every organisation. */
export const OF_DEPLOYMENT: readonly string[] = [
  ...["createOrganization", "listOrganizations", "updateLimits", "resealValues", "scrapeMetrics"],

  ...["createPriceList", "createTopUp", "createAdjustment"],
  "takeDownEnvironmentVersion",
];

/**
 * Operations that ignore the project header. A key of one project reaches those things of the organisation that belong
 * to its project.
 */
export const OF_ORGANIZATION: readonly string[] = [
  ...["listPrices", "receiveStripeEvent", "whoAmINpm"],
  ...["createFirstOrganization", "acceptInvitation", "whoAmI", "listAuditLog", "getOrganization"],
  ...["createSignInCode", "createSession", "deleteSession", "listSessions", "revokeSession", "getSharedReport"],
  ...["listProjects", "getProject", "updateProject", "getUsage", "getUsageCsv"],
  ...["createApiKey", "listApiKeys", "getApiKey", "updateApiKey", "rotateApiKey", "revokeApiKey"],
  ...["listDeletions", ...SHOWN_TO_OPERATORS],
  ...[...OF_ALL_PROJECTS, ...NOT_TO_ITS_OWN],
  ...OF_DEPLOYMENT,
];

/**
 * Operations that a signed-in browser may not use, although it acts as its key; and those that only a browser finds.
 */
export const NOT_BY_SESSION: readonly string[] = ["createSignInCode"];
export const ONLY_BY_SESSION: readonly string[] = ["deleteSession"];

/** What a person with the role may do, with a key that has all scopes. */
export const MAY: Readonly<Record<"owner" | "developer" | "viewer", readonly Permission[]>> = {
  owner: ["admin"],
  developer: [
    ...(["runs:write", "rollouts:write", "environments:write", "datasets:write"] as const),
    ...(["endpoints:write", "secrets:write", "webhooks:write", "triggers:write", "trainer", "billing:read"] as const),
  ],
  viewer: [
    ...(["runs:read", "rollouts:read", "environments:read", "datasets:read"] as const),
    ...(["endpoints:read", "webhooks:read", "triggers:read", "billing:read"] as const),
  ],
};

/** Write includes read; `runs:write` includes reading datasets and being the trainer of the runs. */
const INCLUDED: Readonly<Record<string, readonly string[]>> = {
  "runs:write": ["runs:read", "rollouts:read", "datasets:read", "trainer"],
  "rollouts:write": ["rollouts:read"],
  "environments:write": ["environments:read"],
  "datasets:write": ["datasets:read"],
  "endpoints:write": ["endpoints:read"],
  "secrets:write": ["secrets:read"],
  "webhooks:write": ["webhooks:read"],
  "triggers:write": ["triggers:read"],
  operator: ["metrics"],
  "billing:write": ["billing:read"],
};

/** `admin` includes everything except operations about the deployment. */
export function mayDo(held: readonly Permission[], takes: (typeof TAKES)[string]): boolean {
  if (typeof takes === "string") return true;
  return takes.some((needed) =>
    held.some(
      (one) =>
        one === needed ||
        (one === "admin" && needed !== "operator" && needed !== "metrics") ||
        INCLUDED[one]?.includes(needed),
    ),
  );
}
