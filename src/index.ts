/** The Worker: its Durable Object classes and its three doors. Nothing else. */

import { createApp } from "./api/app.ts";
import type { RunMessage } from "./runtime/contract/wire.ts";
import { readDataset, readDatasetRows } from "./runtime/dataset/read.ts";
import { createDataset } from "./runtime/dataset/upload.ts";
import { listEnvironments, readEnvironment } from "./runtime/environment/read-environments.ts";
import { refuseExit } from "./runtime/environment/stage-clock.ts";
import { logError } from "./runtime/kit/log.ts";
import { RunObject as Run } from "./runtime/run/object.ts";
import { acceptRun } from "./runtime/service/accept-run.ts";
import { askTrainer, readWeightLedger, rotateTrainerToken } from "./runtime/service/ask-trainer.ts";
import { auditRun } from "./runtime/service/audit-run.ts";
import { compareRuns } from "./runtime/service/compare-runs.ts";
import { consume } from "./runtime/service/consume.ts";
import { cancelRollout, cancelRun, changeRun, pauseRun, resumeRun, retryRun } from "./runtime/service/control-run.ts";
import { deleteDataset } from "./runtime/service/delete-unused.ts";
import { changeEndpoint, createEndpoint, deleteEndpoint, probeEndpoint } from "./runtime/service/endpoints.ts";
import { exportRun } from "./runtime/service/export-run.ts";
import { forkRollout } from "./runtime/service/fork-run.ts";

import { readCredits, readManifest, readSamples, streamSamples } from "./runtime/service/read-batch.ts";
import { readInFlight, readResults, readRollout } from "./runtime/service/read-rollouts.ts";
import { readEvents, readMetrics, readRun } from "./runtime/service/read-run.ts";
import { rescoreRun } from "./runtime/service/rescore-run.ts";
import { changeSecret, createSecret } from "./runtime/service/store-secret.ts";

export { EndpointObject } from "./runtime/endpoint/object.ts";
export { RolloutObject } from "./runtime/rollout/object.ts";
export { RolloutSqlObject } from "./runtime/rollout/sql-object.ts";
export { TrainerObject } from "./runtime/trainer/object.ts";

export class RunObject extends Run {
  protected override readonly acceptEval = acceptRun;
}

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
