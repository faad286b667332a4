/**
 * The Worker under faults: the same classes and routes with a different `env`. Its queues lose, double, delay and
 * reorder, its stores fail on demand (knobs.ts), and answers between objects get lost. Every fault writes one line to
 * the log: `fault <kind>`, with the queue if it is one of a queue.
 */
import worker, {
  AccountObject as RealAccountObject,
  EndpointObject as RealEndpointObject,
  GathererObject as RealGathererObject,
  RolloutObject as RealRolloutObject,
  RunObject as RealRunObject,
  TrainerObject as RealTrainerObject,
} from "../../src/index.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { WORK_QUEUES } from "../../src/kernel/messages/queues.ts";
import type { RunMessage } from "../../src/kernel/messages/wire.ts";
import { losingIsolates } from "./faulty-isolates.ts";
import { losingReplies } from "./faulty-objects.ts";
import { FaultyQueue } from "./faulty-queue.ts";
import { failing } from "./faulty-store.ts";
import { type FaultyEnv, Knobs } from "./knobs.ts";

/** One for the whole isolate. */
let shared: { readonly env: Env; readonly knobs: Knobs } | null = null;

// biome-ignore lint/performance/noReExportAll: whatever else the Worker exports stays as it is
// biome-ignore lint/performance/noBarrelFile: an entry module is one
export * from "../../src/index.ts";

export class RunObject extends RealRunObject {
  readonly #knobs: Knobs;

  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    const { env: under, knobs } = faulty(env);
    super(ctx, under);
    this.#knobs = knobs;
  }

  override async alarm(): Promise<void> {
    if ((await this.#knobs.read()).reconcile) await super.alarm();
  }
}

export class RolloutObject extends RealRolloutObject {
  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    super(ctx, faulty(env).env);
  }
}

export class GathererObject extends RealGathererObject {
  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    super(ctx, faulty(env).env);
  }
}

export class EndpointObject extends RealEndpointObject {
  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    super(ctx, faulty(env).env);
  }
}

export class AccountObject extends RealAccountObject {
  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    super(ctx, faulty(env).env);
  }
}

export class TrainerObject extends RealTrainerObject {
  constructor(ctx: DurableObjectState, env: FaultyEnv) {
    super(ctx, faulty(env).env);
  }
}

export default {
  // An HTTP client is not an object: only the network can lose its answers.
  fetch: (request, env, context) => worker.fetch(request, { ...faulty(env).env, ...objectsOf(env) }, context),
  queue: (batch, env) => worker.queue(batch, faulty(env).env),
} satisfies ExportedHandler<FaultyEnv, RunMessage>;

function faulty(env: FaultyEnv): NonNullable<typeof shared> {
  if (shared !== null) return shared;
  const knobs = new Knobs(env.FAULTS);
  const under = {
    ...env,
    ...faultyQueues(env, knobs),
    STORE: failing(env.STORE, "STORE", knobs),
    ...failingDatabases(env, knobs),
    RUN: losingReplies(env.RUN, knobs),
    GATHERER: losingReplies(env.GATHERER, knobs),
    ROLLOUT: losingReplies(env.ROLLOUT, knobs),
    ENDPOINT: losingReplies(env.ENDPOINT, knobs),
    TRAINER: losingReplies(env.TRAINER, knobs),
    ACCOUNT: losingReplies(env.ACCOUNT, knobs),
    LOADER: losingIsolates(env.LOADER, knobs),
  };
  shared = { env: under, knobs };
  return shared;
}

function failingDatabases(env: Env, knobs: Knobs): Pick<Env, "DB"> {
  const [DB = env.DB, ...others] = databaseOf(env).all.map((d1) => failing(d1, "DB", knobs));
  return { DB, ...Object.fromEntries(others.map((d1, at) => [`DB_${at + 1}`, d1])) };
}

/** Every queue to which the Worker sends. */
function faultyQueues(env: Env, knobs: Knobs): Record<string, Queue> {
  return Object.fromEntries(
    WORK_QUEUES.map(({ binding, queue }) => [binding, new FaultyQueue(env[binding], queue, knobs)]),
  );
}

function objectsOf({ RUN, ROLLOUT, ENDPOINT, TRAINER, ACCOUNT }: Env) {
  return { RUN, ROLLOUT, ENDPOINT, TRAINER, ACCOUNT };
}
