/** The Worker: its Durable Object classes and its three doors. Nothing else. */

import { createApp } from "./api/app.ts";
import { acceptRun } from "./runtime/accept-run.ts";
import { consume } from "./runtime/consume.ts";
import { logError } from "./runtime/log.ts";
import { listEnvironments, readEnvironment } from "./runtime/read-environments.ts";
import { readResults, readRollout } from "./runtime/read-rollouts.ts";
import { cancelRun, readEvents, readRun } from "./runtime/read-run.ts";
import type { RunMessage } from "./runtime/wire.ts";

export { RolloutObject } from "./runtime/rollout-object.ts";
export { RunObject } from "./runtime/run-object.ts";

const app = createApp({
  services: {
    acceptRun,
    readRun,
    cancelRun,
    readEvents,
    readResults,
    readRollout,
    listEnvironments,
    readEnvironment,
  },
  now: () => Date.now(),
  report: (error, requestId) => logError("request failed", requestId, error),
});

export default {
  fetch: app.fetch,
  queue: consume,
} satisfies ExportedHandler<Env, RunMessage>;
