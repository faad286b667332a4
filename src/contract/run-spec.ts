/** The specification of a run, with every name in it resolved. The run's row and its object keep it unchanged. */
import type { AgentSettings } from "./agent.ts";
import type { RunLimits } from "./eval-request.ts";
import type { LocationHint } from "./fleet.ts";
import type { JsonObject } from "./json.ts";
import type { ResolvedJudge, TokenPrices } from "./judgement.ts";
import type { Fees, OfferedTokens } from "./money.ts";
import type { TokenForm } from "./prompts.ts";
import type { ForkedFrom } from "./run.ts";
import type { Sampling } from "./sampling.ts";
import type { Scope } from "./scope.ts";
import type { StoredTrainer, TrainingSpec } from "./training-request.ts";
import type { RunDataset } from "./uploaded-dataset.ts";

/** The environment build that a run plays. */
export interface EnvironmentPin {
  readonly id: string;
  readonly version: string;
  readonly digest: string;
}

/** Immutable, except `max_concurrent` in the row. */
export interface RunSpec {
  readonly scope: Scope;
  readonly run_id: string;
  readonly environment: EnvironmentPin;
  readonly environment_args: JsonObject;
  /**
   * What the code may use, as it was accepted: published code could declare more when it is loaded again. Absent if it
   * comes with the deployment.
   */
  readonly needs?: readonly string[];
  readonly dataset: RunDataset;
  readonly model: string;
  /** Where the model is called: an endpoint, or the fleet in `fleet`. */
  readonly endpoint_id: string;
  /** Set for a run on a fleet. */
  readonly fleet?: RunFleet;
  /** True: the endpoint refuses streams, so each of its replies comes whole. */
  readonly replies_whole?: boolean;
  readonly sampling: Sampling;
  readonly limits: RunLimits;
  readonly seed: number;
  readonly shuffle: boolean;
  /** Tasks of the run; each is one group. */
  readonly num_examples: number;
  readonly rollouts_per_example: number;
  readonly max_concurrent: number;
  readonly min_scored: number;
  /** True if the rubric needs whole groups: each group is then scored as one scoring group. */
  readonly whole_groups: boolean;
  readonly created_at: number;
  /** The best possible reward, if the environment declares it. */
  readonly max_reward?: number;
  /** The endpoint and model of each judge of the rubric; absent if the rubric has none. */
  readonly judges?: Readonly<Record<string, ResolvedJudge>>;
  /** False: every judgement is requested again, even if the same question was answered before. */
  readonly judge_cache?: boolean;
  /** True: the same call at temperature 0 is not made again: its answer comes from the project's cache. */
  readonly answer_cache?: boolean;
  /** Set if prompts are sent as token ids from the second turn on. */
  readonly prompts?: TokenForm;
  /** Set for a run whose rollouts continue after a turn of another rollout. */
  readonly fork?: ForkOrigin;
  /** Set for a run that samples nothing: it scores the stored rollouts of another run. */
  readonly rescore?: { readonly run_id: string };
  /** Set for a training run: `rollouts_per_example` is then its group's size, and groups open one by one. */
  readonly training?: TrainingSpec;
  /** What was created for the trainer of a training run. */
  readonly trainer?: StoredTrainer;
  /** Who pays, and the prices; absent for a run created before prices existed. */
  readonly money?: RunMoney;
  /** Set for a run whose rollouts are played by an agent instead of the environment's turn logic. */
  readonly agent?: AgentSettings;
  /** The platform's origin in the request that created the run: the base of links in messages to others. */
  readonly origin?: string;
}

/** The fleet that a run calls. */
export interface RunFleet {
  readonly id: string;
  /** Where the run's objects are placed, as the fleet was configured when the run was created. */
  readonly location_hint?: LocationHint;
  /** For an eval of a training run's weights: that training run. */
  readonly weights_of?: string;
  /** Where version 0 of those weights is: engines may have been started with other weights. */
  readonly initial_weights?: string;
}

/** The payment terms of a run, pinned when it was created. */
export interface RunMoney {
  /** The key or person that began it: `key_…`, `per_…`. */
  readonly payer: string;
  /** The platform's prices; null if the organisation is charged nothing. */
  readonly prices: PinnedPrices | null;
  /** The addresses for which prices were looked up: calls go nowhere else. Absent if nothing is charged. */
  readonly addresses?: PinnedAddresses;
  /** The prices of the policy's endpoint; null if none are set. Those of judges are in `judges`. */
  readonly policy: TokenPrices | null;
  /** Maximum of the run's total cost: the platform's charges, and tokens by the prices of their endpoints. */
  readonly max_cost_micros?: number;
}

/** Address of the policy (null if nothing is sampled), and of each judge by its name. */
export interface PinnedAddresses {
  readonly policy: string | null;
  readonly judges: Readonly<Record<string, string>>;
}

/** The part of one version of the price list that the run needs. */
export interface PinnedPrices {
  readonly version: string;
  readonly fees: Fees;
  /** Null if the platform does not offer the policy's endpoint: then its tokens are not charged. */
  readonly policy: OfferedTokens | null;
  /** By the name of the judge; without judges whose endpoints the platform does not offer. */
  readonly judges: Readonly<Record<string, OfferedTokens>>;
}

/** The turn after which rollouts continue, and the R2 key of the data they begin with. */
export interface ForkOrigin extends ForkedFrom {
  readonly key: string;
}

/** Rollouts that are planned when a run begins: a training run plans its groups one by one. */
export function plannedAtFirst({ training, num_examples, rollouts_per_example }: RunSpec): number {
  return training === undefined ? num_examples * rollouts_per_example : 0;
}
