/** What a run was asked to do, with every name in it resolved. Kept as it is in the run's row and in its object. */
import type { RunLimits } from "./eval-request.ts";
import type { LocationHint } from "./fleet.ts";
import type { JsonObject } from "./json.ts";
import type { ResolvedJudge, TokenPrices } from "./judgement.ts";
import type { Fees, OfferedTokens } from "./money.ts";
import type { ForkedFrom } from "./run.ts";
import type { Sampling } from "./sampling.ts";
import type { Scope } from "./scope.ts";
import type { StoredTrainer, TrainingSpec } from "./training-request.ts";
import type { RunDataset } from "./uploaded-dataset.ts";

/** The code a run plays. */
export interface EnvironmentPin {
  readonly id: string;
  readonly version: string;
  readonly digest: string;
}

/** Immutable, but for `max_concurrent` in the row. */
export interface RunSpec {
  readonly scope: Scope;
  readonly run_id: string;
  readonly environment: EnvironmentPin;
  readonly environment_args: JsonObject;
  readonly dataset: RunDataset;
  readonly model: string;
  /** Where the model is called: an endpoint, or the fleet of `fleet`. */
  readonly endpoint_id: string;
  /** Set for a run on a fleet. */
  readonly fleet?: RunFleet;
  readonly sampling: Sampling;
  readonly limits: RunLimits;
  readonly seed: number;
  readonly shuffle: boolean;
  /** Tasks of the run; each is one group. */
  readonly num_examples: number;
  readonly rollouts_per_example: number;
  readonly max_concurrent: number;
  readonly min_scored: number;
  /** True when the rubric looks at whole groups: they are then scored as one unit. */
  readonly whole_groups: boolean;
  readonly created_at: number;
  /** Who answers for each judge of the rubric; absent for a run that needs none. */
  readonly judges?: Readonly<Record<string, ResolvedJudge>>;
  /** False: every judgement is requested again, whatever was said to the same question before. */
  readonly judge_cache?: boolean;
  /** Set for a run whose rollouts go on behind a turn of another one. */
  readonly fork?: ForkOrigin;
  /** Set for a run that samples nothing: it scores what the rollouts of another one left behind. */
  readonly rescore?: { readonly run_id: string };
  /** Set for a training run: `rollouts_per_example` is then its group's size, and groups open one by one. */
  readonly training?: TrainingSpec;
  /** What was made for the trainer of a training run. */
  readonly trainer?: StoredTrainer;
  /** Who pays, and what; absent for a run from before there were prices. */
  readonly money?: RunMoney;
  /** Of the platform, as whoever began the run addressed it: what others are told is read there. */
  readonly origin?: string;
}

/** The fleet that a run calls. */
export interface RunFleet {
  readonly id: string;
  /** Where its objects are to live, as the fleet said when the run was created. */
  readonly location_hint?: LocationHint;
  /** Of an eval that a training run began: that run, whose weights it plays. */
  readonly weights_of?: string;
  /** Where version 0 of those weights is: what engines were started with is not taken for it. */
  readonly initial_weights?: string;
}

/** What a run pays, pinned when it was created. */
export interface RunMoney {
  /** The key or person that began it: `key_…`, `per_…`. */
  readonly payer: string;
  /** What the platform asks; null where its organisation is charged nothing. */
  readonly prices: PinnedPrices | null;
  /** Where that was found out: calls go nowhere else. Absent where nothing is charged. */
  readonly addresses?: PinnedAddresses;
  /** What the owner of the policy's endpoint asks; null where nobody said. Of judges it stands in `judges`. */
  readonly policy: TokenPrices | null;
  /** What the run may cost in all: the platform's charges, and tokens by the prices of their endpoints. */
  readonly max_cost_micros?: number;
}

/** Of the policy (null where nothing is sampled), and of each judge by its name. */
export interface PinnedAddresses {
  readonly policy: string | null;
  readonly judges: Readonly<Record<string, string>>;
}

/** What the run needs of one version of the list of prices. */
export interface PinnedPrices {
  readonly version: string;
  readonly fees: Fees;
  /** Null where the policy's endpoint is not one that the platform offers: its tokens are not charged. */
  readonly policy: OfferedTokens | null;
  /** By the name of the judge; those of endpoints that the platform does not offer are left out. */
  readonly judges: Readonly<Record<string, OfferedTokens>>;
}

/** The turn rollouts go on behind, and where what they begin with is kept (R2). */
export interface ForkOrigin extends ForkedFrom {
  readonly key: string;
}

/** Rollouts that a run plans when it begins: a training run plans its groups one by one. */
export function plannedAtFirst({ training, num_examples, rollouts_per_example }: RunSpec): number {
  return training === undefined ? num_examples * rollouts_per_example : 0;
}
