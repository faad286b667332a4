/**
 * A request of each operation, in an order in which each can succeed: deletions come after the operations that need the
 * thing. A new operation is added here with the things it names, and in permissions.ts.
 */
import { env } from "cloudflare:workers";
import { rolloutAt } from "../../platform.ts";
import { uploaded } from "../../upload.ts";
import { PAGE_REQUESTS } from "./page-requests.ts";
import {
  beginTraining,
  NAME,
  newBudget,
  newEndpoint,
  newFleet,
  newInvitation,
  newKey,
  newPerson,
  newProject,
  newSecret,
  newTrigger,
  newUpload,
  newWebhook,
  PLAYED,
  type Project,
  type Resources,
  ROWS,
  startGoing,
  TRAINER,
} from "./resources.ts";

export interface Asked {
  readonly path: string;
  /** JSON, or a text that is sent as lines. */
  readonly body?: unknown;
  /** True: sent with its own Idempotency-Key. */
  readonly once?: true;
  /** The token that proves it instead of the caller's key. */
  readonly bearer?: string;
}

export interface Request {
  readonly ask: (things: Resources) => Asked;
  /** For operations that work only once: a new thing for each caller that may use them. */
  readonly anew?: (project: Project) => Promise<Partial<Resources>>;
  /** True: the thing that it names is in its body and not in its path. */
  readonly inBody?: true;
  /** The status for a caller that may use it, if that is not the operation's first documented one. */
  readonly status?: number;
}

const EXAM = { environment: "gsm8k", model: PLAYED.model, endpoint: NAME };
const ASKED = { question: "What is 2 + 2?", answer: "4" };
const JUDGED = { ...EXAM, environment: "judged-qa", dataset: [ASKED] };

const addressOf = (rollout: string, path: string): Asked => ({ path: `/model/${rollout}/v1/${path}`, body: {} });
const thisMonth = () => new Date().toISOString().slice(0, 7);
const unique = () => `n-${crypto.randomUUID()}`;
/** Far in the future, so that no run of another test gets these prices. Each is a second after the previous one. */
let farAway = Math.floor(Date.now() / 1000) + 250_000_000;
const anotherKey = async ({ api }: Project) => ({ key: await newKey(api) });
const going = async ({ api }: Project) => ({ going: await startGoing(api) });
const leaseOf = ({ lease_token }: Resources) => ({ token: lease_token, epoch: 1 });
const replicaOf = ({ fleet }: Resources) => `/v1/fleets/${fleet}/replicas/${NAME}`;
const batchOf = ({ training }: Resources) => `/v1/runs/${training}/batches/1`;

const READS: Readonly<Record<string, Request>> = {
  getHealth: { ask: () => ({ path: "/healthz" }) },
  getReadiness: { ask: () => ({ path: "/readyz" }) },
  getOpenApi: { ask: () => ({ path: "/openapi.json" }) },
  getDocs: { ask: () => ({ path: "/docs" }) },
  getJoinPage: { ask: () => ({ path: "/join" }) },
  scrapeMetrics: { ask: () => ({ path: "/metrics" }) },
  listAuditLog: { ask: () => ({ path: "/v1/audit-log" }) },
  getUsage: { ask: () => ({ path: "/v1/usage?start_time=1795392000" }) },
  getUsageCsv: { ask: () => ({ path: "/v1/usage/csv?start_time=1795392000&group_by=project" }) },
  listStatements: { ask: () => ({ path: "/v1/statements" }) },
  getStatement: { ask: () => ({ path: `/v1/statements/${thisMonth()}` }) },
  getStatementCsv: { ask: () => ({ path: `/v1/statements/${thisMonth()}/csv` }) },
  listRuns: { ask: () => ({ path: "/v1/runs" }) },
  getRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}` }) },
  auditCharges: { ask: ({ run }) => ({ path: `/v1/runs/${run}/charges` }) },
  auditRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}/audit` }) },
  streamEvents: { ask: ({ run }) => ({ path: `/v1/runs/${run}/events` }) },
  compareRuns: { ask: ({ run, rival }) => ({ path: `/v1/runs/${run}/compare?baseline=${rival}` }) },
  compareTasks: { ask: ({ run, rival }) => ({ path: `/v1/runs/${run}/compare/tasks?baselines=${rival}` }) },
  listMetrics: { ask: ({ training }) => ({ path: `/v1/runs/${training}/metrics` }) },
  listResults: { ask: ({ run }) => ({ path: `/v1/runs/${run}/results` }) },
  listRollouts: { ask: ({ run }) => ({ path: `/v1/runs/${run}/rollouts` }) },
  listGroups: { ask: ({ run }) => ({ path: `/v1/runs/${run}/groups` }) },
  getGroup: { ask: ({ run }) => ({ path: `/v1/runs/${run}/groups/0` }) },
  getHistogram: { ask: ({ run }) => ({ path: `/v1/runs/${run}/histogram` }) },
  exportRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}/export` }) },
  getRollout: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}` }) },
  getRolloutHead: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/head` }) },
  listTurns: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/turns` }) },
  getTurn: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/turns/0` }) },
  // Its engine sends no token ids.
  getTurnTokens: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/turns/0/tokens` }), status: 409 },
  listJudgeQuestions: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/questions` }) },
  getOutline: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/outline` }) },
  getBatch: { ask: (things) => ({ path: batchOf(things) }) },
  getBatchObject: { ask: (things) => ({ path: `${batchOf(things)}/objects/${things.object_sha256}` }) },
  getBatchCredits: { ask: (things) => ({ path: `${batchOf(things)}/credits` }) },
  streamBatch: { ask: (things) => ({ path: `${batchOf(things)}/stream` }) },
  listWeightVersions: { ask: ({ training }) => ({ path: `/v1/runs/${training}/weight-versions` }) },
  listEnvironments: { ask: () => ({ path: "/v1/environments" }) },
  getEnvironment: { ask: () => ({ path: "/v1/environments/calculator" }) },
  getEnvironmentResults: { ask: () => ({ path: "/v1/environments/calculator/results" }) },
  listEnvironmentVersions: { ask: ({ published }) => ({ path: `${published}/versions` }) },
  getEnvironmentPackage: { ask: ({ published }) => ({ path: `${published}/package` }) },
  getEnvironmentReadme: { ask: ({ published }) => ({ path: `${published}/readme` }) },
  pingNpm: { ask: () => ({ path: "/npm/-/ping" }) },
  logOutNpm: { ask: () => ({ path: "/npm/-/user/token/rk_gone" }) },
  whoAmINpm: { ask: () => ({ path: "/npm/-/whoami" }) },
  listNpmTags: { ask: ({ npm }) => ({ path: `/npm/-/package/${npm}/dist-tags` }) },
  listScopedNpmTags: { ask: ({ npm }) => ({ path: `/npm/-/package/${npm.replace("%2f", "/")}/dist-tags` }) },
  getNpmPackage: { ask: ({ npm }) => ({ path: `/npm/${npm}` }) },
  getScopedNpmPackage: { ask: ({ npm }) => ({ path: `/npm/${npm.replace("%2f", "/")}` }) },
  getNpmTarball: { ask: ({ npm }) => ({ path: `/npm/${npm}/-/${npm.split("%2f")[1]}-1.0.0.tgz` }) },
  getScopedNpmTarball: {
    ask: ({ npm }) => {
      const [scope, name] = npm.split("%2f");
      return { path: `/npm/${scope}/${name}/-/${name}-1.0.0.tgz` };
    },
  },
  // An owner is an organisation: test/hub/python.test.ts has what each of its projects finds.
  listPythonProjects: { ask: () => ({ path: "/python/unknown-owner/simple/" }), status: 404 },
  getPythonProject: { ask: ({ python }) => ({ path: python }) },
  findPythonProject: { ask: ({ python }) => ({ path: python.replace(/\/$/, "") }), status: 301 },
  getPythonFile: { ask: ({ wheel }) => ({ path: wheel }) },
  getEnvironmentGrant: { ask: ({ published }) => ({ path: `${published}/grant` }) },
  listEndpoints: { ask: () => ({ path: "/v1/endpoints" }) },
  getEndpoint: { ask: ({ endpoint }) => ({ path: `/v1/endpoints/${endpoint}` }) },
  listFleets: { ask: () => ({ path: "/v1/fleets" }) },
  getFleet: { ask: ({ fleet }) => ({ path: `/v1/fleets/${fleet}` }) },
  listReplicas: { ask: ({ fleet }) => ({ path: `/v1/fleets/${fleet}/replicas` }) },
  getReplica: { ask: (things) => ({ path: replicaOf(things) }) },
  listSecrets: { ask: () => ({ path: "/v1/secrets" }) },
  getSecret: { ask: ({ secret }) => ({ path: `/v1/secrets/${secret}` }) },
  listWebhookEndpoints: { ask: () => ({ path: "/v1/webhook-endpoints" }) },
  getWebhookEndpoint: { ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}` }) },
  listWebhookDeliveries: { ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}/deliveries` }) },
  listTriggers: { ask: () => ({ path: "/v1/triggers" }) },
  getTrigger: { ask: ({ trigger }) => ({ path: `/v1/triggers/${trigger}` }) },
  listTriggerDeliveries: { ask: ({ trigger }) => ({ path: `/v1/triggers/${trigger}/deliveries` }) },
  listDatasets: { ask: () => ({ path: "/v1/datasets" }) },
  getDataset: { ask: ({ dataset }) => ({ path: `/v1/datasets/${dataset}` }) },
  listDatasetUploads: { ask: () => ({ path: "/v1/dataset-uploads" }) },
  getDatasetUpload: { ask: ({ upload }) => ({ path: `/v1/dataset-uploads/${upload}` }) },
  listDatasetRows: { ask: ({ dataset }) => ({ path: `/v1/datasets/${dataset}/rows` }) },
};

const CHANGES: Readonly<Record<string, Request>> = {
  createRun: { ask: () => ({ path: "/v1/runs", body: { ...PLAYED, endpoint: NAME } }) },
  previewRun: { ask: () => ({ path: "/v1/runs/preview", body: { ...PLAYED, endpoint: NAME } }) },
  updateRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}`, body: { name: NAME } }) },
  pauseRun: { ask: ({ going: run }) => ({ path: `/v1/runs/${run}/pause` }) },
  resumeRun: { ask: ({ going: run }) => ({ path: `/v1/runs/${run}/resume` }) },
  cancelRollout: {
    ask: ({ going: run }) => ({ path: `/v1/rollouts/${rolloutAt(run)}/cancel` }),
    anew: going,
  },
  cancelRun: { ask: ({ going: run }) => ({ path: `/v1/runs/${run}/cancel` }), anew: going },
  deleteRun: {
    ask: ({ run }) => ({ path: `/v1/runs/${run}` }),
    anew: async ({ api }) => ({ run: (await api.finish(PLAYED)).id }),
  },
  retryRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}/retry`, body: {} }) },
  releaseLostCalls: { ask: ({ run }) => ({ path: `/v1/runs/${run}/release-lost-calls` }) },
  rescoreRun: { ask: ({ run }) => ({ path: `/v1/runs/${run}/rescore`, body: {} }) },
  forkRollout: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/fork`, body: { turn: 0 } }) },
  createEndpoint: {
    ask: () => ({ path: "/v1/endpoints", body: { name: unique(), base_url: env.MODEL_URL, probe: false } }),
  },
  updateEndpoint: { ask: ({ endpoint }) => ({ path: `/v1/endpoints/${endpoint}`, body: { rpm: 60 } }) },
  probeEndpoint: {
    ask: ({ endpoint }) => ({ path: `/v1/endpoints/${endpoint}/probe`, body: { model: PLAYED.model } }),
  },
  deleteEndpoint: {
    ask: ({ endpoint }) => ({ path: `/v1/endpoints/${endpoint}` }),
    anew: async ({ api }) => ({ endpoint: await newEndpoint(api, unique()) }),
  },
  createFleet: { ask: () => ({ path: "/v1/fleets", body: { name: unique() } }) },
  updateFleet: { ask: ({ fleet }) => ({ path: `/v1/fleets/${fleet}`, body: { location_hint: "weur" } }) },
  addReplica: {
    ask: ({ fleet }) => ({
      path: `/v1/fleets/${fleet}/replicas`,
      body: { name: unique(), base_url: `${env.MODEL_URL}/${unique()}` },
    }),
  },
  updateReplica: { ask: (things) => ({ path: replicaOf(things), body: { draining: true } }) },
  probeReplica: { ask: (things) => ({ path: `${replicaOf(things)}/probe` }) },
  removeReplica: {
    ask: (things) => ({ path: replicaOf(things) }),
    anew: async ({ api }) => ({ fleet: await newFleet(api, unique()) }),
  },
  deleteFleet: {
    ask: ({ fleet }) => ({ path: `/v1/fleets/${fleet}` }),
    anew: async ({ api }) => ({ fleet: await newFleet(api, unique()) }),
  },
  createSecret: {
    ask: () => ({
      path: "/v1/secrets",
      body: { name: `N_${Date.now()}_${Math.floor(Math.random() * 1e9)}`, value: "kept" },
    }),
  },
  updateSecret: { ask: ({ secret }) => ({ path: `/v1/secrets/${secret}`, body: { value: "another value" } }) },
  // Who may publish is told that this is not a package.
  publishEnvironment: { ask: () => ({ path: "/v1/environments", body: "x" }), status: 400 },
  updateEnvironmentVersion: {
    ask: ({ published_version }) => ({ path: published_version, body: { deprecated: "use another" } }),
  },
  moveEnvironmentTag: {
    ask: ({ published }) => ({ path: `${published}/tags/beta`, body: { version: "1.0.0" } }),
  },
  deleteEnvironmentTag: { ask: ({ published }) => ({ path: `${published}/tags/gone` }) },
  putNpmPackage: { ask: ({ npm }) => ({ path: `/npm/${npm}`, body: { versions: {} } }) },
  putScopedNpmPackage: { ask: ({ npm }) => ({ path: `/npm/${npm.replace("%2f", "/")}`, body: { versions: {} } }) },
  moveNpmTag: { ask: ({ npm }) => ({ path: `/npm/-/package/${npm}/dist-tags/beta`, body: '"1.0.0"' }) },
  moveScopedNpmTag: {
    ask: ({ npm }) => ({ path: `/npm/-/package/${npm.replace("%2f", "/")}/dist-tags/beta`, body: '"1.0.0"' }),
  },
  deleteNpmTag: { ask: ({ npm }) => ({ path: `/npm/-/package/${npm}/dist-tags/gone` }) },
  deleteScopedNpmTag: { ask: ({ npm }) => ({ path: `/npm/-/package/${npm.replace("%2f", "/")}/dist-tags/gone` }) },
  setEnvironmentGrant: { ask: ({ published }) => ({ path: `${published}/grant`, body: { needs: ["fetch"] } }) },
  takeDownEnvironmentVersion: {
    ask: ({ published_version }) => ({ path: `${published_version}/take-down`, body: { reason: "a test" } }),
  },
  deleteSecret: {
    ask: ({ secret }) => ({ path: `/v1/secrets/${secret}` }),
    anew: async ({ api }) => ({ secret: await newSecret(api, `N${crypto.randomUUID().replaceAll("-", "")}`) }),
  },
  createWebhookEndpoint: { ask: () => ({ path: "/v1/webhook-endpoints", body: { url: `${env.MODEL_URL}/hook` } }) },
  updateWebhookEndpoint: {
    ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}`, body: { description: NAME } }),
  },
  deleteWebhookEndpoint: {
    ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}` }),
    anew: async ({ api }) => await newWebhook(api),
  },
  rotateWebhookSecret: {
    ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}/rotate-secret`, body: { overlap_s: 0 } }),
  },
  replayWebhookDelivery: {
    ask: ({ webhook, delivery }) => ({ path: `/v1/webhook-endpoints/${webhook}/deliveries/${delivery}/replay` }),
  },
  replayWebhookDeliveries: {
    ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}/replay`, body: { after: 0 } }),
  },
  testWebhookEndpoint: { ask: ({ webhook }) => ({ path: `/v1/webhook-endpoints/${webhook}/test` }) },
  createTrigger: {
    ask: () => {
      const body = { name: unique(), verify: { scheme: "standard" }, run: { ...PLAYED, endpoint: NAME } };
      return { path: "/v1/triggers", body };
    },
  },
  updateTrigger: { ask: ({ trigger }) => ({ path: `/v1/triggers/${trigger}`, body: { disabled: true } }) },
  testTrigger: { ask: ({ trigger }) => ({ path: `/v1/triggers/${trigger}/test`, body: { payload: {} } }) },
  // It is not signed, whoever sends it.
  receiveDelivery: { ask: ({ trigger }) => ({ path: `/hooks/${trigger}`, body: {} }), status: 401 },
  createRollout: {
    ask: () => ({ path: "/v1/rollouts", body: { row: ASKED, model: PLAYED.model, endpoint: NAME } }),
  },
  leaseRollouts: { ask: () => ({ path: "/v1/agents/tester/lease", body: { worker: "w", wait_s: 0 } }) },
  heartbeatAgent: { ask: () => ({ path: "/v1/agents/tester/heartbeat", body: { worker: "w", leases: [] } }) },
  releaseAgent: { ask: () => ({ path: "/v1/agents/tester/release", body: { worker: "w", leases: [] } }) },
  // Only the rollout's own key opens these.
  finishRollout: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/finish`, body: {} }), status: 401 },
  callChatCompletions: { ask: ({ rollout }) => addressOf(rollout, "chat/completions"), status: 401 },
  callResponses: { ask: ({ rollout }) => addressOf(rollout, "responses"), status: 401 },
  callMessages: { ask: ({ rollout }) => addressOf(rollout, "messages"), status: 401 },
  countMessageTokens: { ask: ({ rollout }) => addressOf(rollout, "messages/count_tokens"), status: 401 },
  listRolloutModels: { ask: ({ rollout }) => ({ path: `/model/${rollout}/v1/models` }), status: 401 },
  deleteTrigger: {
    ask: ({ trigger }) => ({ path: `/v1/triggers/${trigger}` }),
    anew: async ({ api }) => ({ trigger: await newTrigger(api, unique()) }),
  },
  createDataset: { ask: () => ({ path: `/v1/datasets?name=${unique()}`, body: ROWS }) },
  deleteDataset: {
    ask: ({ dataset }) => ({ path: `/v1/datasets/${dataset}` }),
    anew: async ({ api }) => ({ dataset: (await uploaded(api, ROWS)).id }),
  },
  createDatasetUpload: { ask: () => ({ path: "/v1/dataset-uploads", body: { name: unique() } }) },
  putDatasetUploadPart: { ask: ({ upload }) => ({ path: `/v1/dataset-uploads/${upload}/parts/1`, body: ROWS }) },
  completeDatasetUpload: {
    ask: ({ upload }) => ({ path: `/v1/dataset-uploads/${upload}/complete`, body: { bytes: ROWS.length } }),
    anew: async ({ api }) => ({ upload: await newUpload(api) }),
  },
  deleteDatasetUpload: {
    ask: ({ upload }) => ({ path: `/v1/dataset-uploads/${upload}` }),
    anew: async ({ api }) => ({ upload: await newUpload(api) }),
  },
};

const TRAINING: Readonly<Record<string, Request>> = {
  leaseBatch: {
    ask: ({ training }) => {
      const body = { trainer_id: "t0", epoch: 1, want_step: 1, max_wait_s: 0 };
      return { path: `/v1/runs/${training}/trainer/lease`, body };
    },
  },
  heartbeatLease: { ask: (things) => ({ path: `/v1/leases/${things.lease}/heartbeat`, body: leaseOf(things) }) },
  ackLease: {
    ask: (things) => {
      const { batch: batch_id, batch_sha256: sha256 } = things;
      const body = { ...leaseOf(things), batch_id, sha256, produced_version: 1 };
      return { path: `/v1/leases/${things.lease}/ack`, body };
    },
  },
  // An acknowledged batch cannot be returned.
  nackLease: {
    ask: (things) => {
      const body = { ...leaseOf(things), reason: "oom", retryable: true };
      return { path: `/v1/leases/${things.lease}/nack`, body };
    },
    status: 409,
  },
  reportWeightVersion: {
    ask: ({ training }) => {
      const body = { version: 1, state: "applied", replica: "gpu-0", epoch: 1 };
      return { path: `/v1/runs/${training}/weight-versions`, body };
    },
    // An engine reports that it serves versions which the trainer published.
    anew: async ({ api, things }) => {
      await api.post(`/v1/runs/${things.training}/weight-versions`, { version: 1, state: "published", epoch: 1 });
      return {};
    },
  },
  // Two rotations would end the token of the run's trainer.
  rotateTrainerToken: {
    ask: ({ training }) => ({ path: `/v1/runs/${training}/trainer/token` }),
    anew: async ({ api }) => ({ training: (await beginTraining(api)).id }),
  },
  // Each registration ends the previous ones.
  registerTrainer: { ask: ({ training }) => ({ path: `/v1/runs/${training}/trainer/register`, body: TRAINER }) },
};

/** Bodies and queries that name another owner's things, by operation. */
export const NAMED_INSIDE: readonly (readonly [operation: string, ask: (own: Resources, other: Resources) => Asked])[] =
  [
    ["createRun", (_own, { endpoint }) => ({ path: "/v1/runs", body: { ...PLAYED, endpoint } })],
    ["previewRun", (_own, { endpoint }) => ({ path: "/v1/runs/preview", body: { ...PLAYED, endpoint } })],
    ["createRun", (_own, { dataset }) => ({ path: "/v1/runs", body: { ...EXAM, dataset } })],
    [
      "createRun",
      (_own, { endpoint }) => ({
        path: "/v1/runs",
        body: { ...JUDGED, judges: { default: { endpoint, model: PLAYED.model } } },
      }),
    ],
    [
      "forkRollout",
      ({ rollout }, { endpoint }) => ({ path: `/v1/rollouts/${rollout}/fork`, body: { turn: 0, endpoint } }),
    ],
    ["compareRuns", ({ run }, { rival }) => ({ path: `/v1/runs/${run}/compare?baseline=${rival}` })],
    ["compareTasks", ({ run }, { rival }) => ({ path: `/v1/runs/${run}/compare/tasks?baselines=${rival}` })],
    ["listRuns", (_own, { run }) => ({ path: `/v1/runs?after=${run}` })],
    ["listFleets", (_own, { fleet }) => ({ path: `/v1/fleets?after=${fleet}` })],
    ["listEndpoints", (_own, { endpoint }) => ({ path: `/v1/endpoints?after=${endpoint}` })],
    ["listSecrets", (_own, { secret }) => ({ path: `/v1/secrets?after=${secret}` })],
    ["listWebhookEndpoints", (_own, { webhook }) => ({ path: `/v1/webhook-endpoints?after=${webhook}` })],
    ["listTriggers", (_own, { trigger }) => ({ path: `/v1/triggers?after=${trigger}` })],
    ["listDatasetUploads", (_own, { upload }) => ({ path: `/v1/dataset-uploads?after=${upload}` })],
    ["listDatasets", (_own, { dataset }) => ({ path: `/v1/datasets?after=${dataset}` })],
  ];

const ACCOUNTS: Readonly<Record<string, Request>> = {
  // This deployment has no token for it.
  createFirstOrganization: { ask: () => ({ path: "/v1/bootstrap", body: { name: NAME } }), status: 404 },
  whoAmI: { ask: () => ({ path: "/v1/whoami" }) },
  getOrganization: { ask: () => ({ path: "/v1/organization" }) },
  updateOrganization: { ask: () => ({ path: "/v1/organization", body: { name: NAME } }) },
  createOrganization: { ask: () => ({ path: "/v1/organizations", body: { name: NAME } }) },
  listOrganizations: { ask: () => ({ path: "/v1/organizations" }) },
  updateLimits: {
    ask: ({ organization }) => {
      return { path: `/v1/organizations/${organization}`, body: { limits: { requests_per_minute: null } } };
    },
  },
  resealValues: { ask: () => ({ path: "/v1/reseal" }) },
  createProject: { ask: () => ({ path: "/v1/projects", body: { name: unique() } }) },
  listProjects: { ask: () => ({ path: "/v1/projects" }) },
  getProject: { ask: ({ project }) => ({ path: `/v1/projects/${project}` }) },
  updateProject: {
    ask: ({ project }) => ({ path: `/v1/projects/${project}`, body: { retention: { verdicts_days: 30 } } }),
  },
  createApiKey: {
    ask: ({ project }) => ({ path: "/v1/keys", body: { name: NAME, scopes: ["runs:read"], project } }),
    inBody: true,
  },
  listApiKeys: { ask: () => ({ path: "/v1/keys" }) },
  getApiKey: { ask: ({ key }) => ({ path: `/v1/keys/${key}` }) },
  updateApiKey: { ask: ({ key }) => ({ path: `/v1/keys/${key}`, body: { name: NAME } }) },
  rotateApiKey: { ask: ({ key }) => ({ path: `/v1/keys/${key}/rotate`, body: {} }), anew: anotherKey },
  revokeApiKey: { ask: ({ key }) => ({ path: `/v1/keys/${key}` }), anew: anotherKey },
  deleteProject: {
    ask: ({ project }) => ({ path: `/v1/projects/${project}` }),
    anew: async ({ api }) => ({ project: await newProject(api) }),
  },
  // With a name that is not its own.
  deleteOrganization: { ask: () => ({ path: "/v1/organization", body: { confirm: "another" } }), status: 400 },
  listDeletions: { ask: () => ({ path: "/v1/deletions" }) },
  getDeletion: { ask: ({ deletion }) => ({ path: `/v1/deletions/${deletion}` }) },
  listPeople: { ask: () => ({ path: "/v1/people" }) },
  updatePerson: { ask: ({ person }) => ({ path: `/v1/people/${person}`, body: { role: "viewer" } }) },
  deletePerson: {
    ask: ({ person }) => ({ path: `/v1/people/${person}` }),
    anew: async ({ api }) => ({ person: await newPerson(api) }),
  },
  createInvitation: {
    ask: () => ({ path: "/v1/invitations", body: { email: `${unique()}@example.com`, role: "viewer" } }),
  },
  listInvitations: { ask: () => ({ path: "/v1/invitations" }) },
  acceptInvitation: {
    ask: ({ invitation_token: token }) => ({ path: "/v1/invitations/accept", body: { token } }),
    anew: ({ api }) => newInvitation(api),
  },
  deleteInvitation: {
    ask: ({ invitation }) => ({ path: `/v1/invitations/${invitation}` }),
    anew: ({ api }) => newInvitation(api),
  },
};

const FEES = { rollout_micros: 1, thousand_turns_micros: 1, scoring_micros: 1, push_micros: 1, gb_day_micros: 1 };
const anotherBudget = async ({ api }: Project) => ({ budget: await newBudget(api, await newPerson(api)) });

const MONEY: Readonly<Record<string, Request>> = {
  listPrices: { ask: () => ({ path: "/v1/prices" }) },
  createPriceList: {
    ask: () => {
      farAway += 1;
      return {
        path: "/v1/prices",
        body: { version: unique().slice(0, 31), effective_from: farAway, fees: FEES },
      };
    },
  },
  getBalance: { ask: () => ({ path: "/v1/balance" }) },
  listLedgerEntries: { ask: () => ({ path: "/v1/ledger" }) },
  verifyLedger: { ask: () => ({ path: "/v1/ledger/verification" }) },
  createTopUp: {
    ask: ({ organization }) => ({ path: "/v1/top-ups", body: { organization, amount_micros: 1 }, once: true }),
  },
  // The source that it names is in no ledger.
  createAdjustment: {
    ask: ({ organization }) => {
      const body = { organization, kind: "correction", amount_micros: 1, source: "nothing", note: NAME };
      return { path: "/v1/adjustments", body, once: true };
    },
    status: 404,
  },
  createBudget: {
    ask: ({ person }) => ({ path: "/v1/budgets", body: { target_kind: "key", target_id: person, limit_micros: 1 } }),
    anew: async ({ api }) => ({ person: await newPerson(api) }),
    inBody: true,
  },
  listBudgets: { ask: () => ({ path: "/v1/budgets" }) },
  getBudget: { ask: ({ budget }) => ({ path: `/v1/budgets/${budget}` }) },
  updateBudget: { ask: ({ budget }) => ({ path: `/v1/budgets/${budget}`, body: { limit_micros: 2 } }) },
  deleteBudget: { ask: ({ budget }) => ({ path: `/v1/budgets/${budget}` }), anew: anotherBudget },
  // This deployment has no Stripe account.
  createCheckout: {
    ask: () => ({ path: "/v1/checkouts", body: { amount_micros: 500_000, success_url: "https://example.com" } }),
    status: 404,
  },
  receiveStripeEvent: { ask: () => ({ path: "/v1/stripe/webhook", body: {} }), status: 404 },
};

export const REQUESTS: Readonly<Record<string, Request>> = {
  ...{ ...READS, ...CHANGES, ...ACCOUNTS, ...MONEY, ...TRAINING },
  ...PAGE_REQUESTS,
};
