/**
 * The metrics of a step, with prime-rl's names.
 *
 * Invariants. `all` covers everything that arrived since the previous step, `effective` exactly what shipped. Unscored
 * rollouts are in no mean. A metric without measurements is absent, never 0. Quantiles interpolate linearly.
 */
import { tQuantile975 } from "../statistics/spread.ts";
import type { Lengths } from "./advantage.ts";
import { type OffPolicyLag, offPolicyLag } from "./numbering.ts";

export interface RolloutFacts {
  readonly reward: number | null;
  readonly outcome: string;
  readonly is_truncated: boolean;
  /** Null if they were not counted. */
  readonly lengths: Lengths | null;
  /** Number of its training samples. */
  readonly samples: number;
  /** The newest version that sampled tokens of it. */
  readonly policy_version_end: number;
  /** The class of its failure. */
  readonly error: string | null;
}

export interface GroupFacts {
  /** The member whose task it is, in a group of environments. */
  readonly member?: string;
  readonly dispatch_version: number;
  readonly rollouts: readonly RolloutFacts[];
  /** Transitions between turns: how often a sample was continued, and how often not. */
  readonly transitions?: {
    readonly clean: number;
    readonly forked: number;
    readonly realigned: number;
  };
  /** Scored members without samples, by cause. */
  readonly untrainable?: Readonly<Record<string, number>>;
  /** Scored members in which a filter found something, by filter; and those of them without samples for that. */
  readonly flagged?: Readonly<Record<string, number>>;
  readonly filtered?: Readonly<Record<string, number>>;
  /** Later turns by how their prompts were sent: as token ids, or as messages by cause. */
  readonly prompts?: Readonly<Record<string, number>>;
}

export interface StepFacts {
  readonly step: number;
  readonly arrived: readonly GroupFacts[];
  readonly shipped: readonly GroupFacts[];
  /** Rollouts dropped because they were too old. */
  readonly dropped_stale: number;
}

type Metrics = Record<string, number>;
type Named = readonly [name: string, value: number | null];

export function stepMetrics({ step, arrived, shipped, dropped_stale }: StepFacts): Metrics {
  const effective = shipped.map((group) => ({
    ...group,
    rollouts: group.rollouts.filter(({ samples }) => samples > 0),
  }));
  const metrics = [
    ...cohort("train/agg", arrived, effective),
    ...perEnvironment(arrived, effective),
    ...staleness(step, effective),
    ...breaks(arrived),
    ...countsByName("untrainable", arrived),
    ...countsByName("flagged", arrived),
    ...countsByName("filtered", arrived),
    ...countsByName("prompts", arrived),
    ["off_policy/dropped", dropped_stale] as const,
  ];
  return Object.fromEntries(metrics.flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
}

/** The metrics of each member of a group of environments. For a single environment `agg` has the same. */
function perEnvironment(arrived: readonly GroupFacts[], shipped: readonly GroupFacts[]): Named[] {
  const names = new Set([...arrived, ...shipped].flatMap(({ member }) => member ?? []));
  const of = (groups: readonly GroupFacts[], name: string) => groups.filter(({ member }) => member === name);
  return [...names].flatMap((name) => cohort(`train/${name}`, of(arrived, name), of(shipped, name)));
}

function cohort(prefix: string, arrived: readonly GroupFacts[], shipped: readonly GroupFacts[]): Named[] {
  return [
    ...measures(`${prefix}/all`, arrived),
    ...interval(`${prefix}/all/reward`, arrived),
    ...troubles(`${prefix}/all`, arrived),
    ...measures(`${prefix}/effective`, shipped),
  ];
}

function measures(prefix: string, groups: readonly GroupFacts[]): Named[] {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const counted = rollouts.flatMap(({ lengths, samples }) => (lengths === null ? [] : [{ ...lengths, samples }]));
  const numbers = (name: string, of: (rollout: (typeof counted)[number]) => number) =>
    spread(`${prefix}/${name}`, counted.map(of));
  return [
    ...spread(`${prefix}/reward`, rewardsOf(rollouts)),
    ...numbers("num_total_tokens", ({ total }) => total),
    ...numbers("num_input_tokens", ({ total, output }) => total - output),
    ...numbers("num_output_tokens", ({ output }) => output),
    ...numbers("num_turns", ({ turns }) => turns),
    ...numbers("num_branches", ({ samples }) => samples),
    [`${prefix}/is_truncated`, share(rollouts, ({ is_truncated }) => is_truncated)],
    [`${prefix}/is_trainable`, share(rollouts, ({ samples }) => samples > 0)],
  ];
}

/**
 * The 95 % interval of the mean reward over rollouts. Its standard error is the one of a mean over clusters (a ratio of
 * sums over groups), by Student's t over the groups, because rollouts of one task are not independent. Not clipped to the
 * range of rewards; absent for fewer than two groups with a reward.
 */
function interval(prefix: string, groups: readonly GroupFacts[]): Named[] {
  const scored = groups.map(({ rollouts }) => rewardsOf(rollouts)).filter((rewards) => rewards.length > 0);
  const [low, high] = clusteredInterval(scored) ?? [null, null];
  return [
    [`${prefix}/ci95_low`, low],
    [`${prefix}/ci95_high`, high],
  ];
}

function clusteredInterval(groups: readonly (readonly number[])[]): [number, number] | null {
  if (groups.length < 2) return null;
  const sumOf = (rewards: readonly number[]) => rewards.reduce((sum, reward) => sum + reward, 0);
  const rollouts = groups.reduce((count, rewards) => count + rewards.length, 0);
  const mean = sumOf(groups.map(sumOf)) / rollouts;
  const squares = sumOf(groups.map((rewards) => (sumOf(rewards) - rewards.length * mean) ** 2));
  const se = Math.sqrt((groups.length / (groups.length - 1)) * squares) / rollouts;
  const half = tQuantile975(groups.length - 1) * se;
  return [mean - half, mean + half];
}

function troubles(prefix: string, groups: readonly GroupFacts[]): Named[] {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const errors = [...new Set(rollouts.flatMap(({ error }) => error ?? []))];
  const solved = groups.flatMap((group) => solvedShare(group) ?? []);
  return [
    [`${prefix}/has_error`, share(rollouts, ({ error }) => error !== null)],
    [`${prefix}/cancelled`, share(rollouts, ({ outcome }) => outcome === "cancelled")],
    ...errors.map((name): Named => [`${prefix}/error/${name}`, share(rollouts, ({ error }) => error === name)]),
    [`${prefix}/solved_none`, share(solved, (kind) => kind === "none")],
    [`${prefix}/solved_some`, share(solved, (kind) => kind === "some")],
    [`${prefix}/solved_all`, share(solved, (kind) => kind === "all")],
  ];
}

/** None: every reward is 0 or less. All: every reward is 1 or more. Some: in between. Null if none was scored. */
function solvedShare({ rollouts }: GroupFacts): "none" | "some" | "all" | null {
  const rewards = rewardsOf(rollouts);
  if (rewards.length === 0) return null;
  if (rewards.every((reward) => reward <= 0)) return "none";
  return rewards.every((reward) => reward >= 1) ? "all" : "some";
}

function rewardsOf(rollouts: readonly RolloutFacts[]): number[] {
  return rollouts.flatMap(({ reward }) => reward ?? []);
}

function staleness(step: number, shipped: readonly GroupFacts[]): Named[] {
  const lags = shipped.flatMap(({ dispatch_version: start, rollouts }) =>
    rollouts.map(({ policy_version_end: end }) => offPolicyLag(step, { start, end })),
  );
  const versions = (name: string, of: (lag: OffPolicyLag) => number) => meanAndMost(name, lags.map(of));
  return [
    ...versions("off_policy", ({ total }) => total),
    ...versions("off_policy/in_flight", ({ in_flight }) => in_flight),
    ...versions("off_policy/in_queue", ({ in_queue }) => in_queue),
  ];
}

/** Fractions of the transitions between turns; absent if every rollout has one turn. */
function breaks(arrived: readonly GroupFacts[]): Named[] {
  const all = arrived.flatMap(({ transitions }) => transitions ?? []);
  const sum = (name: "clean" | "forked" | "realigned") =>
    all.reduce((total, transitions) => total + transitions[name], 0);
  const [clean, forked, realigned] = [sum("clean"), sum("forked"), sum("realigned")];
  const total = clean + forked + realigned;
  if (total === 0) return [];
  return [
    ["rollout/fork_frac", forked / total],
    ["rollout/realign_frac", realigned / total],
  ];
}

/**
 * Counts by name; names without any are absent: rollouts that arrived and cannot be trained on, by cause, or in which a
 * filter found something, by filter; and later turns by how their prompts were sent.
 */
function countsByName(of: "untrainable" | "flagged" | "filtered" | "prompts", arrived: readonly GroupFacts[]): Named[] {
  const counts = new Map<string, number>();
  for (const [name, n] of arrived.flatMap((group) => Object.entries(group[of] ?? {}))) {
    counts.set(name, (counts.get(name) ?? 0) + n);
  }
  return [...counts].map(([name, n]) => [`rollout/${of}/${name}`, n]);
}

function spread(name: string, values: readonly number[]): Named[] {
  const sorted = [...values].sort((a, b) => a - b);
  return [
    ...meanAndMost(name, values),
    [`${name}/min`, quantile(sorted, 0)],
    [`${name}/p10`, quantile(sorted, 0.1)],
    [`${name}/p90`, quantile(sorted, 0.9)],
  ];
}

function meanAndMost(name: string, values: readonly number[]): Named[] {
  if (values.length === 0) return [];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const most = values.reduce((max, value) => Math.max(max, value), Number.NEGATIVE_INFINITY);
  return [
    [`${name}/mean`, mean],
    [`${name}/max`, most],
  ];
}

/** `sorted`: ascending. Null if it is empty. */
function quantile(sorted: readonly number[], at: number): number | null {
  const place = at * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  if (below === undefined || above === undefined) return null;
  return below + (above - below) * (place - Math.floor(place));
}

function share<Item>(items: readonly Item[], is: (item: Item) => boolean): number | null {
  return items.length === 0 ? null : items.filter(is).length / items.length;
}
