/** The Worker without slices: what src/index.ts has, but for theirs. */
import { createApp, KERNEL_OPERATIONS } from "../../src/api/app.ts";
import type { RunMessage } from "../../src/runtime/contract/wire.ts";
import { refuseExit } from "../../src/runtime/environment/stage-clock.ts";
import { logError } from "../../src/runtime/kit/log.ts";
import { outlive } from "../../src/runtime/kit/outlive.ts";
import { RunObject as Run } from "../../src/runtime/run/object.ts";
import { acceptRun } from "../../src/runtime/service/accept-run.ts";
import { consume } from "../../src/runtime/service/consume.ts";
import { services } from "../../src/runtime/service/services.ts";
import { openOneOrganization } from "./one-organization.ts";

// biome-ignore lint/performance/noBarrelFile: an entry module is one
export { AccountObject } from "../../src/runtime/account/object.ts";
export { EndpointObject } from "../../src/runtime/endpoint/object.ts";
export { RolloutObject } from "../../src/runtime/rollout/object.ts";
export { RolloutSqlObject } from "../../src/runtime/rollout/sql-object.ts";
export { TrainerObject } from "../../src/runtime/trainer/object.ts";

export class RunObject extends Run {
  protected override readonly acceptEval = acceptRun;
}

refuseExit();

const report = (error: unknown, requestId: string) => logError("request failed", { request_id: requestId }, error);
const app = createApp(
  { services, slices: {}, authentication: openOneOrganization, now: () => Date.now(), outlive, report },
  KERNEL_OPERATIONS,
);

export default { fetch: app.fetch, queue: consume } satisfies ExportedHandler<Env, RunMessage>;
