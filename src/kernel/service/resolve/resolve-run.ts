/**
 * The one step from a requested run to a run that cannot be refused any more: it looks up every name and makes every
 * check, and stores nothing. Runs, forks, rescores, previews and the evals of training runs differ only in their input
 * (`RunWanted`).
 *
 * Order: what it plays → where its model is called → checks of training → judges → limits and prices → cap.
 */
import { AGENT_TIMEOUT_S, type AgentSettings } from "../../../contract/agent.ts";
import type { EvalRequest } from "../../../contract/eval-request.ts";
import type { PromptForm } from "../../../contract/prompts.ts";
import type { RunRequest } from "../../../contract/run.ts";
import type { RunFleet, RunMoney, RunSpec } from "../../../contract/run-spec.ts";
import type { Scope } from "../../../contract/scope.ts";
import {
  asEval,
  REFERENCE_JUDGE,
  type TrainingRequest,
  type TrainingSpec,
  trainingSpecOf,
} from "../../../contract/training-request.ts";
import type { ResolvedDataset } from "../../dataset/resolve.ts";
import { NO_AGENTS } from "../../kit/agent-hooks.ts";
import { agents } from "../../kit/slice-hooks.ts";
import { type Result, refuse } from "../../messages/refusal.ts";
import { limitsOf, type OrganizationStanding } from "../limits.ts";
import {
  type JudgesWanted,
  type PlaceWanted,
  type RunEndpoint,
  type RunJudges,
  resolveJudges,
  resolvePlace,
} from "./endpoint.ts";
import { moneyOf, refuseCap } from "./money.ts";
import { type Played, type PlayWanted, resolvePlay } from "./play.ts";
import { refusePrompts } from "./prompts.ts";
import { refuseEngine, refuseTraining } from "./training.ts";

/** How a run samples and scores, both in the request and in the spec. */
type Settings = Pick<
  RunSpec,
  | "model"
  | "sampling"
  | "limits"
  | "seed"
  | "shuffle"
  | "max_concurrent"
  | "min_scored"
  | "judge_cache"
  | "answer_cache"
  | "prompts"
>;

/** Which weights sample a run's calls, if that matters. */
export type PlayedWeights = Pick<RunFleet, "weights_of" | "initial_weights">;

/** The run to be resolved: from a request (`wantedBy`), or from a run that it is derived from. */
export interface RunWanted extends Omit<Settings, "prompts">, Omit<PlayWanted, "judges" | "kept">, JudgesWanted {
  readonly agent?: AgentSettings | undefined;
  readonly prompts?: PromptForm;
  readonly place: PlaceWanted;
  readonly training: TrainingRequest | null;
  readonly max_cost_micros?: EvalRequest["max_cost_micros"];
  /** Another run starts it, so endpoints of that run may be named by their ids. */
  readonly byRun?: boolean;
  /** The training run whose weights it plays, on the fleet of that run. */
  readonly weights?: PlayedWeights;
}

/** What a run takes from the run that starts it. */
export interface ByRun extends Pick<RunWanted, "byRun" | "weights"> {
  /** The rows of the run that starts it, if it plays those. */
  readonly rows?: ResolvedDataset;
}

/** A run whose names are all resolved and that cannot be refused any more. */
export interface ResolvedRun {
  readonly play: Played;
  /** The settings of the request, within the limits of its endpoint. */
  readonly settings: Settings & Pick<RunSpec, "rollouts_per_example" | "agent">;
  readonly endpoint: RunEndpoint;
  /** The fleet field of its spec; empty for a run on an endpoint. */
  readonly fleet: Pick<RunSpec, "fleet">;
  readonly judges: RunJudges;
  readonly training: TrainingSpec | null;
  /** The limits of its organisation, and what it uses. */
  readonly standing: OrganizationStanding;
  /** Prices and cap. The payer is set when the run starts. */
  readonly money: Omit<RunMoney, "payer">;
}

/** Makes every check of the run; stores nothing. `now`: epoch milliseconds. */
export async function resolveRun(env: Env, scope: Scope, wanted: RunWanted, now: number): Promise<Result<ResolvedRun>> {
  const lookup = { now, byRun: wanted.byRun === true };
  const play = refuseAgent(wanted) ?? (await resolvePlay(env, scope, wanted));
  if (!play.ok) return play;
  const { description } = play.value.environment;
  const endpoint = await resolvePlace(env, scope, wanted.place, lookup);
  if (!endpoint.ok) return endpoint;
  const training = wanted.training && trainingSpecOf(wanted.training, description.players);
  const unfit =
    (training && (await refuseTraining(env, scope, wanted, training, play.value))) ??
    (training && (await refuseEngine(env, scope, wanted, training, endpoint.value, now))) ??
    (await refusePrompts(env, scope, wanted, description, endpoint.value));
  if (unfit !== null) return unfit;
  const asking = { ...wanted, judges: { ...wanted.judges, ...referenceOf(wanted) } };
  const judges = await resolveJudges(env, scope, asking, description.judges, lookup);
  if (!judges.ok) return judges;
  const standing = await limitsOf(env, scope.orgId, now);
  const { place, prices, max_concurrent: most } = endpoint.value;
  // The platform does not provide the engines of a fleet: the owner pays for them, so they have no platform price.
  const base_url = place?.kind === "endpoint" ? place.base_url : null;
  const policy = place === null ? null : { base_url, model: wanted.model, prices };
  const money = await moneyOf(env, standing.billing, { policy, judges: judges.value.places }, now);
  const called = { description, endpoint: endpoint.value, judges: judges.value.judges, prices: money.prices };
  const uncapped = refuseCap(asking, called);
  if (uncapped !== null) return uncapped;
  const { model, sampling, seed, shuffle, rollouts_per_example, min_scored, max_cost_micros } = wanted;
  const settings = {
    ...{ model, sampling, seed, shuffle, rollouts_per_example, min_scored },
    ...playedBy(wanted),
    max_concurrent: Math.min(wanted.max_concurrent, most ?? wanted.max_concurrent),
    ...optionsOf(wanted),
  };
  return {
    ok: true,
    value: {
      ...{ play: play.value, settings, endpoint: endpoint.value, judges: judges.value, training, standing },
      fleet: fleetOf(endpoint.value, training, wanted.weights),
      money: { ...money, ...(max_cost_micros !== undefined && { max_cost_micros }) },
    },
  };
}

/** The reference of a training as one of the run's judges. Its calls must sample a token; that token is not used. */
function referenceOf({ training }: RunWanted): RunWanted["judges"] {
  const reference = training?.reference;
  if (reference === undefined) return {};
  const { endpoint, model } = reference;
  return { [REFERENCE_JUDGE]: { endpoint, model, sampling: { max_tokens: 1 } } };
}

function refuseAgent({ agent }: RunWanted): Result<never> | null {
  if (agent === undefined || agents() !== NO_AGENTS) return null;
  return refuse("invalid_request", "agent: this platform has no agents", "agent");
}

/** An agent has a time limit, because its worker may renew its lease for ever. */
function playedBy({ agent, limits }: RunWanted): Pick<RunSpec, "limits" | "agent"> {
  if (agent === undefined) return { limits };
  return { limits: { rollout_timeout_s: AGENT_TIMEOUT_S, ...limits }, agent };
}

/** Settings that are absent from a spec that has their defaults. */
function optionsOf({
  judge_cache,
  answer_cache,
  prompts,
}: RunWanted): Pick<RunSpec, "judge_cache" | "answer_cache" | "prompts"> {
  return {
    ...(judge_cache !== undefined && { judge_cache }),
    ...(answer_cache === true && { answer_cache }),
    ...(prompts !== undefined && prompts !== "messages" && { prompts }),
  };
}

function fleetOf(
  { place }: RunEndpoint,
  training: TrainingSpec | null,
  played: PlayedWeights = {},
): Pick<RunSpec, "fleet"> {
  if (place?.kind !== "fleet") return {};
  const { id, location_hint } = place;
  const initial = training?.initial_weights;
  const weights = initial === undefined ? played : { initial_weights: initial.location };
  return { fleet: { id, ...(location_hint !== null && { location_hint }), ...weights } };
}

/** The run that a request describes. `by`: what it takes from the run that starts it. */
export function wantedBy(asked: RunRequest, { rows: found, byRun, weights }: ByRun = {}): RunWanted {
  const request = asked.kind === "training" ? asEval(asked) : asked;
  const { environment: named, environment_args: args, dataset, endpoint, fleet } = request;
  const own = found === undefined ? null : { found };
  const given = typeof dataset === "string" ? { named: dataset } : dataset && { inline: dataset };
  return {
    ...request,
    code: { named, args },
    rows: given ?? own,
    groupParam: "rollouts_per_example",
    place: { ...(endpoint !== undefined && { endpoint }), ...(fleet !== undefined && { fleet }) },
    training: asked.kind === "training" ? asked : null,
    ...(byRun !== undefined && { byRun }),
    ...(weights !== undefined && { weights }),
  };
}
