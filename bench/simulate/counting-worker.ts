/** The Worker with an `env` that counts. `GET /counts` returns the counts since the start. */
import worker, {
  AccountObject as RealAccountObject,
  AuditObject as RealAuditObject,
  EndpointObject as RealEndpointObject,
  FleetObject as RealFleetObject,
  ProjectObject as RealProjectObject,
  RequestsObject as RealRequestsObject,
  RolloutObject as RealRolloutObject,
  RunObject as RealRunObject,
} from "../../src/index.ts";
import type { RunMessage } from "../../src/kernel/messages/wire.ts";
import { Counts, counting, countRows, takeRows } from "./counting.ts";

/** One for the isolate, which all objects share locally. */
const counts = new Counts();

// biome-ignore lint/performance/noReExportAll: whatever else the Worker exports stays as it is
// biome-ignore lint/performance/noBarrelFile: an entry module is one
export * from "../../src/index.ts";

export class RunObject extends RealRunObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(countRows(ctx, "run", counts), counting(env, "run", counts));
  }

  override async alarm(): Promise<void> {
    counts.add("alarm > run");
    await super.alarm();
  }
}

export class RolloutObject extends RealRolloutObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(countRows(ctx, "rollout", counts), counting(env, "rollout", counts));
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    counts.add("alarm > rollout");
    await super.alarm(info);
  }
}

export class EndpointObject extends RealEndpointObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(countRows(ctx, "endpoint", counts), counting(env, "endpoint", counts));
  }
}

export class AccountObject extends RealAccountObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(countRows(ctx, "account", counts), counting(env, "account", counts));
  }
}

export class FleetObject extends RealFleetObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(countRows(ctx, "fleet", counts), counting(env, "fleet", counts));
  }
}

export class ProjectObject extends RealProjectObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, counting(env, "project", counts));
  }
}

export class RequestsObject extends RealRequestsObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, counting(env, "requests", counts));
  }
}

export class AuditObject extends RealAuditObject {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, counting(env, "audit", counts));
  }
}

export default {
  fetch: (request, env, context) => {
    const { pathname } = new URL(request.url);
    if (pathname !== "/counts") return worker.fetch(request, counting(env, "http", counts), context);
    takeRows();
    return Response.json(counts.all());
  },
  queue: (batch, env) => {
    counts.add(`consumer ${batch.queue} batches`);
    counts.add(`consumer ${batch.queue} messages`, batch.messages.length);
    return worker.queue(batch, counting(env, `consumer ${batch.queue}`, counts));
  },
} satisfies ExportedHandler<Env, RunMessage>;
