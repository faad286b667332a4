/** The Worker without slices: src/index.ts without their parts. */

import { refuseExit } from "../../src/kernel/environment/stage-clock.ts";
import { createApp, KERNEL_OPERATIONS } from "../../src/kernel/http/app.ts";
import { logError } from "../../src/kernel/kit/log.ts";
import { outlive } from "../../src/kernel/kit/outlive.ts";
import type { RunMessage } from "../../src/kernel/messages/wire.ts";
import { RunObject as Run } from "../../src/kernel/run/object.ts";
import { acceptRun } from "../../src/kernel/service/accept-run.ts";
import { consume } from "../../src/kernel/service/consume.ts";
import { services } from "../../src/kernel/service/services.ts";
import { openOneOrganization } from "./one-organization.ts";

// biome-ignore lint/performance/noBarrelFile: an entry module is one
export { AccountObject } from "../../src/kernel/account/object.ts";
export { EndpointObject } from "../../src/kernel/endpoint/object.ts";
export { RolloutObject } from "../../src/kernel/rollout/object.ts";
export { RolloutSqlObject } from "../../src/kernel/rollout/sql-object.ts";
export { GathererObject } from "../../src/kernel/run/gatherer.ts";
export { TrainerObject } from "../../src/kernel/trainer/object.ts";

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
