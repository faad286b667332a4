/** The Worker: its Durable Object classes and its three doors. Nothing else. */

import { createApp } from "./api/app.ts";
import { acceptRun } from "./runtime/accept-run.ts";
import { askTrainer, readWeightLedger } from "./runtime/ask-trainer.ts";
import { auditRun } from "./runtime/audit-run.ts";
import { changeEndpoint, deleteEndpoint, probeEndpoint } from "./runtime/change-endpoint.ts";
import { compareRuns } from "./runtime/compare-runs.ts";
import { consume } from "./runtime/consume.ts";
import { cancelRollout, cancelRun, changeRun, pauseRun, resumeRun, retryRun } from "./runtime/control-run.ts";
import { createEndpoint } from "./runtime/create-endpoint.ts";
import { exportRun } from "./runtime/export-run.ts";
import { forkRollout } from "./runtime/fork-run.ts";
import { logError } from "./runtime/log.ts";
import { refuseExit } from "./runtime/no-exit.ts";
import { readCredits, readManifest, readSamples, streamSamples } from "./runtime/read-batch.ts";
import { deleteDataset, readDataset, readDatasetRows } from "./runtime/read-datasets.ts";
import { listEnvironments, readEnvironment } from "./runtime/read-environments.ts";
import { readInFlight } from "./runtime/read-in-flight.ts";
import { readResults, readRollout } from "./runtime/read-rollouts.ts";
import { readEvents, readMetrics, readRun } from "./runtime/read-run.ts";
import { rescoreRun } from "./runtime/rescore-run.ts";
import { rotateTrainerToken } from "./runtime/rotate-token.ts";
import { changeSecret, createSecret } from "./runtime/store-secret.ts";
import { createDataset } from "./runtime/upload-dataset.ts";
import type { RunMessage } from "./runtime/wire.ts";

export { EndpointObject } from "./runtime/endpoint-object.ts";
export { RolloutObject } from "./runtime/rollout-object.ts";
export { RolloutSqlObject } from "./runtime/rollout-sql-object.ts";
export { RunObject } from "./runtime/run-object.ts";
export { TrainerObject } from "./runtime/trainer-object.ts";

refuseExit();

const app = createApp({
  services: {
    acceptRun,
    readRun,
    cancelRun,
    pauseRun,
    resumeRun,
    changeRun,
    retryRun,
    rescoreRun,
    auditRun,
    compareRuns,
    readEvents,
    readMetrics,
    readResults,
    readInFlight,
    exportRun,
    readRollout,
    cancelRollout,
    forkRollout,
    askTrainer,
    rotateTrainerToken,
    readWeightLedger,
    readManifest,
    readCredits,
    streamSamples,
    readSamples,
    listEnvironments,
    readEnvironment,
    createEndpoint,
    changeEndpoint,
    probeEndpoint,
    deleteEndpoint,
    createSecret,
    changeSecret,
    createDataset,
    readDataset,
    readDatasetRows,
    deleteDataset,
  },
  now: () => Date.now(),
  report: (error, requestId) => logError("request failed", requestId, error),
});

export default {
  fetch: app.fetch,
  queue: consume,
} satisfies ExportedHandler<Env, RunMessage>;
