/**
 * The Worker under faults: the same classes and routes with a different `env`. Its queues lose, double, delay and
 * reorder, its stores fail on demand (knobs.ts), and answers between objects get lost. Every fault writes one line to
 * the log: `fault <kind>`.
 */
import worker, {
  AccountObject as RealAccountObject,
  EndpointObject as RealEndpointObject,
  GathererObject as RealGathererObject,
  RolloutObject as RealRolloutObject,
  RunObject as RealRunObject,
  TrainerObject as RealTrainerObject,
} from "../../src/index.ts";
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
    ROLLOUT_GROUPS: new FaultyQueue(env.ROLLOUT_GROUPS, knobs),
    ROLLOUT_SCORES: new FaultyQueue(env.ROLLOUT_SCORES, knobs),
    ROLLOUT_SCORES_HEAVY: new FaultyQueue(env.ROLLOUT_SCORES_HEAVY, knobs),
    ROLLOUT_JUDGEMENTS: new FaultyQueue(env.ROLLOUT_JUDGEMENTS, knobs),
    ROLLOUT_JUDGEMENTS_1: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_1, knobs),
    ROLLOUT_JUDGEMENTS_2: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_2, knobs),
    ROLLOUT_JUDGEMENTS_3: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_3, knobs),
    ROLLOUT_JUDGEMENTS_SLOW: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_SLOW, knobs),
    ROLLOUT_JUDGEMENTS_SLOW_1: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_SLOW_1, knobs),
    ROLLOUT_JUDGEMENTS_SLOW_2: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_SLOW_2, knobs),
    ROLLOUT_JUDGEMENTS_SLOW_3: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_SLOW_3, knobs),
    ROLLOUT_JUDGEMENTS_SILENT: new FaultyQueue(env.ROLLOUT_JUDGEMENTS_SILENT, knobs),
    RUN_SEGMENTS: new FaultyQueue(env.RUN_SEGMENTS, knobs),
    STORE: failing(env.STORE, "STORE", knobs),
    DB: failing(env.DB, "DB", knobs),
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

function objectsOf({ RUN, ROLLOUT, ENDPOINT, TRAINER, ACCOUNT }: Env) {
  return { RUN, ROLLOUT, ENDPOINT, TRAINER, ACCOUNT };
}
