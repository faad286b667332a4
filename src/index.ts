/** The Worker: its Durable Object classes and its three doors. Nothing else. */
import { openAuthentication } from "./accounts/authentication.ts";
import { createApp } from "./api/app.ts";
import type { ApiDependencies } from "./api/operation.ts";
import type { RunMessage } from "./runtime/contract/wire.ts";
import { refuseExit } from "./runtime/environment/stage-clock.ts";
import { logError } from "./runtime/kit/log.ts";
import { outlive } from "./runtime/kit/outlive.ts";
import { RunObject as Run } from "./runtime/run/object.ts";
import { acceptRun } from "./runtime/service/accept-run.ts";
import { consume } from "./runtime/service/consume.ts";
import { services } from "./runtime/service/services.ts";
import { SLICE_SERVICES } from "./slice-services.ts";
import { OPERATIONS } from "./slices.ts";
import { TriggerObject as Trigger } from "./triggers/object.ts";

export { AuditObject } from "./accounts/audit-object.ts";
export { RequestsObject } from "./accounts/requests-object.ts";
export { AccountObject } from "./billing/object.ts";
export { FleetObject } from "./fleets/object.ts";
export { ProjectObject } from "./retention/object.ts";
export { EndpointObject } from "./runtime/endpoint/object.ts";
export { RolloutObject } from "./runtime/rollout/object.ts";
export { RolloutSqlObject } from "./runtime/rollout/sql-object.ts";
export { TrainerObject } from "./runtime/trainer/object.ts";
export { WebhookObject } from "./webhooks/object.ts";

/** A training run evaluates its weights with runs of their own, which are accepted as those of anybody are. */
export class RunObject extends Run {
  protected override readonly acceptEval = acceptRun;
}

/** A delivery begins a run as anybody does. */
export class TriggerObject extends Trigger {
  protected override readonly acceptRun = acceptRun;
}

refuseExit();

const dependencies: ApiDependencies = {
  services,
  slices: SLICE_SERVICES,
  authentication: openAuthentication,
  now: () => Date.now(),
  outlive,
  report: (error, requestId) => logError("request failed", { request_id: requestId }, error),
};
const app = createApp(dependencies, OPERATIONS);

export default {
  fetch: app.fetch,
  queue: consume,
} satisfies ExportedHandler<Env, RunMessage>;
