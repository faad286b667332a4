/**
 * The functions that the API calls, one for each operation. Failures are returned as values: an error thrown across an
 * object's boundary would lose its class and code. `now` is epoch milliseconds. `replayed` is true if the idempotency
 * key named something that already existed.
 */
import { readDataset, readDatasetRows } from "../dataset/read.ts";
import { endUpload, readUpload } from "../dataset/upload-parts.ts";
import { listEnvironments, readEnvironment } from "../environment/read-environments.ts";
import { acceptRun } from "./accept-run.ts";
import { askTrainer, readWeightVersions, rotateTrainerToken } from "./ask-trainer.ts";
import { auditRun } from "./audit-run.ts";
import { checkReadiness } from "./check-readiness.ts";
import { compareRuns } from "./compare-runs.ts";
import { compareTasks } from "./compare-tasks.ts";
import { cancelRollout, cancelRun, changeRun, pauseRun, releaseLostCalls, resumeRun, retryRun } from "./control-run.ts";
import { deleteDataset } from "./delete-unused.ts";
import { changeEndpoint, createEndpoint, deleteEndpoint, probeEndpoint } from "./endpoints.ts";
import { readEnvironmentResults } from "./environment-results.ts";
import { exportRun } from "./export-run.ts";
import { forkRollout } from "./fork-run.ts";
import { formatBatch } from "./format-batch.ts";
import { listGroups, listRollouts, readGroup } from "./list-rollouts.ts";
import { previewRun } from "./preview-run.ts";
import { readCredits, readManifest, readSamples, streamSamples } from "./read-batch.ts";
import { readHistogram } from "./read-histogram.ts";
import { readJudgeQuestions } from "./read-questions.ts";
import { readResults, readRollout } from "./read-rollouts.ts";
import { readEvents, readMetrics, readRun } from "./read-run.ts";
import { readTurnTokens } from "./read-tokens.ts";
import { readOutline, readRolloutHead, readTurn, readTurns } from "./read-turns.ts";
import { rescoreRun } from "./rescore-run.ts";
import { reseal } from "./reseal.ts";
import { changeSecret, createSecret } from "./store-secret.ts";
import { completeUploadOf, createUpload, uploadDataset, uploadPart } from "./upload-dataset.ts";

export const services = {
  acceptRun,
  readRun,
  cancelRun,
  pauseRun,
  resumeRun,
  changeRun,
  releaseLostCalls,
  retryRun,
  rescoreRun,
  auditRun,
  compareRuns,
  compareTasks,
  readEvents,
  readMetrics,
  readResults,
  listGroups,
  listRollouts,
  readGroup,
  readHistogram,
  exportRun,
  readRollout,
  readRolloutHead,
  readTurns,
  readTurn,
  readTurnTokens,
  readOutline,
  readJudgeQuestions,
  cancelRollout,
  forkRollout,
  askTrainer,
  rotateTrainerToken,
  readWeightVersions,
  formatBatch,
  readManifest,
  readCredits,
  streamSamples,
  readSamples,
  listEnvironments,
  readEnvironment,
  readEnvironmentResults,
  createEndpoint,
  changeEndpoint,
  probeEndpoint,
  deleteEndpoint,
  reseal,
  createSecret,
  changeSecret,
  createDataset: uploadDataset,
  createDatasetUpload: createUpload,
  readDatasetUpload: readUpload,
  putDatasetUploadPart: uploadPart,
  completeDatasetUpload: completeUploadOf,
  deleteDatasetUpload: endUpload,
  readDataset,
  readDatasetRows,
  deleteDataset,
  previewRun,
  checkReadiness,
};
export type Services = typeof services;
