/** The Worker: its Durable Object classes, its HTTP handler, its queue consumer and its cron. Nothing else. */
import { openAuthentication } from "./accounts/authentication.ts";
import { serveBackup } from "./backup/serve.ts";
import { refuseExit } from "./kernel/environment/stage-clock.ts";
import { createApp } from "./kernel/http/app.ts";
import type { ApiDependencies } from "./kernel/http/operation.ts";
import { logError } from "./kernel/kit/log.ts";
import { outlive } from "./kernel/kit/outlive.ts";
import type { RunMessage } from "./kernel/messages/wire.ts";
import { RunObject as Run } from "./kernel/run/object.ts";
import { acceptRun } from "./kernel/service/accept-run.ts";
import { consume } from "./kernel/service/consume.ts";
import { services } from "./kernel/service/services.ts";
import { wakeRuns } from "./kernel/service/wake-runs.ts";
import { serveOperator } from "./operator/serve.ts";
import { SLICE_SERVICES } from "./slice-services.ts";
import { OPERATIONS } from "./slices.ts";
import { TriggerObject as Trigger } from "./triggers/object.ts";

export { AuditObject } from "./accounts/audit-object.ts";
export { RequestsObject } from "./accounts/requests-object.ts";
export { AgentsObject } from "./agents/object.ts";
export { AccountObject } from "./billing/object.ts";
export { FleetObject } from "./fleets/object.ts";
export { EndpointObject } from "./kernel/endpoint/object.ts";
export { RolloutObject } from "./kernel/rollout/object.ts";
export { RolloutSqlObject } from "./kernel/rollout/sql-object.ts";
export { GathererObject } from "./kernel/run/gatherer.ts";
export { TrainerObject } from "./kernel/trainer/object.ts";
export { ProjectObject } from "./retention/object.ts";
export { WebhookObject } from "./webhooks/object.ts";

/** A training run evaluates its weights with eval runs. They are accepted in the same way as a client's runs. */
export class RunObject extends Run {
  protected override readonly acceptEval = acceptRun;
}

/** A delivery starts a run. It is accepted in the same way as a client's run. */
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

/** The addresses in replies begin as the client's do, also if a proxy before a local platform ends TLS. */
function asSentToProxy(request: Request, env: Env): Request {
  if (Number(env.LOCAL_PORT) === 0 || request.headers.get("x-forwarded-proto") !== "https") return request;
  return new Request(request.url.replace(/^http:/, "https:"), request);
}

export default {
  fetch: (received: Request, env: Env, ctx: ExecutionContext) => {
    const request = asSentToProxy(received, env);
    return serveBackup(request, env) ?? serveOperator(request, env) ?? app.fetch(request, env, ctx);
  },
  queue: consume,
  async scheduled(_, env) {
    await wakeRuns(env, Date.now());
  },
} satisfies ExportedHandler<Env, RunMessage>;
