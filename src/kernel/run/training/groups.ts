/**
 * Handles complete groups of a training run: computes credits of their members, then buffers the group for a batch or
 * drops it with a recorded reason. It runs inside the transaction that ended the group's last member.
 *
 * Invariants. A group is handled once. Members without a reward are left out. Samples of weights that are too old or
 * discarded are never trained on. A run whose rollouts give nothing to train on ends with the reason.
 */
import { type CreditedGroup, creditGroup } from "../../../core/training/advantage.ts";
import { largestGroup, rulesOf } from "../../../core/training/members.ts";
import { isFresh } from "../../../core/training/numbering.ts";
import type { GroupFacts } from "../../../core/training/step-metrics.ts";
import type { GroupSamples, TrainingSpec } from "../../messages/training-wire.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { RunStore } from "../store.ts";
import {
  type Buffered,
  type Counts,
  type Credit,
  type Dropped,
  type Made,
  plus,
  plusAll,
  type TrainGroup,
  type TrainingState,
  withDropped,
  withoutOpen,
} from "../training-state.ts";
import type { MemberRow } from "../training-store.ts";
import { allCut, stepRollouts } from "./plan.ts";

/** After this many empty batches in a row, or this many batches' worth of rollouts without samples, the run fails. */
const MOST_BARREN_BATCHES = 10;

/** A complete group, with its members, credits and samples. */
interface Arrival {
  readonly group: TrainGroup;
  readonly size: number;
  readonly members: readonly MemberRow[];
  readonly credited: CreditedGroup;
  readonly made: GroupSamples | null;
}

/** Handles the group if all its members have ended. Does nothing in a run that trains nothing. */
export function closeGroup(store: RunStore, spec: RunSpec, index: number, made: GroupSamples | null): void {
  const asked = spec.training;
  const group = asked === undefined ? null : store.training.group(index);
  if (asked === undefined || group === null || group.position !== null) return;
  const members = store.training.members(index);
  const ended = members.filter(({ status }) => status === "done").length;
  const size = group.size ?? spec.rollouts_per_example;
  if (ended < size) return;
  const rewards = members.map(({ id, reward }) => ({ reward, lengths: made?.lengths[id] }));
  const credited = creditGroup(rulesOf(asked, memberOf(members)), rewards);
  takeIn(store, spec, asked, { group, size, members, credited, made });
}

/** The member of a group of environments: all are rollouts of one task. Null if none of them could start. */
function memberOf(members: readonly MemberRow[]): string | null {
  return members.find(({ member }) => member !== null)?.member ?? null;
}

function takeIn(store: RunStore, spec: RunSpec, asked: TrainingSpec, arrival: Arrival): void {
  const head = store.head();
  const { training } = head;
  if (training === null) return;
  const { group } = arrival;
  const position = training.positions + 1;
  const arrived_step = training.step;
  const facts = JSON.stringify(factsOf(arrival));
  const voided = group.state === "dropped";
  const reason = voided ? group.reason : dropReason(asked, training, arrival);
  const columns = reason === null ? columnsOf(arrival) : NOTHING_KEPT;
  const mean = reason === "stale" || reason === "version_reset" ? null : arrival.credited.mean;
  const state = reason === null ? ("buffered" as const) : ("dropped" as const);
  const kept = { ...columns, mean, state, reason, position, arrived_step, facts };
  store.training.setGroup(group.group_index, kept);
  const met = { ...noteArrival(training, arrival), positions: position };
  const counted = voided ? met : countedIn(met, reason, columns, arrival.size);
  const stored_bytes = head.stored_bytes + (arrival.made?.object?.bytes ?? 0);
  store.saveHead({ ...head, training: counted, stored_bytes });
  if (!voided) giveUpIfBarren(store, spec, asked, { size: arrival.size, cause: reason ?? barrenCause(columns) });
}

function dropReason(asked: TrainingSpec, training: TrainingState, { group, credited, made }: Arrival): Dropped | null {
  if (allCut(asked, training)) return "unused";
  if (!isFresh(group.dispatch_version, training.step, asked.max_off_policy_steps)) return "stale";
  const newest = newestVersion(group, made);
  if (group.void_above !== null && newest > group.void_above) return "version_reset";
  if (credited.verdict === "too_few") return "too_few";
  // With "refill" it is replaced; else it counts towards its batch, but is not trained on.
  if (credited.verdict === "zero_variance") {
    return asked.zero_variance === "refill" ? "zero_variance" : null;
  }
  if (made !== null && made.object !== null && made.samples.length > 0) return null;
  return Object.keys(made?.filtered ?? {}).length > 0 ? "filtered" : "untrainable";
}

function newestVersion({ dispatch_version }: TrainGroup, made: GroupSamples | null): number {
  return (made?.samples ?? []).reduce(
    (newest, { policy_version_end }) => Math.max(newest, policy_version_end),
    dispatch_version,
  );
}

const NOTHING_KEPT = {
  rollouts: 0,
  samples: 0,
  tokens: 0,
  bytes: 0,
  made: null,
  credits: null,
  max_version: null,
};

function columnsOf({ group, members, credited, made }: Arrival) {
  const trains = credited.verdict === "train" && made !== null;
  if (!trains) return { ...NOTHING_KEPT, rollouts: credited.survivors };
  const { object, samples } = made;
  const credits = creditsOf(members, credited);
  const counted = samples.filter(({ rollout_id }) => rollout_id in credits);
  return {
    rollouts: new Set(counted.map(({ rollout_id }) => rollout_id)).size,
    samples: samples.length,
    tokens: samples.reduce((sum, { tokens }) => sum + tokens, 0),
    bytes: object?.bytes ?? 0,
    made: JSON.stringify({ object, samples } satisfies Made),
    credits: JSON.stringify(credits),
    max_version: newestVersion(group, made),
  };
}

function creditsOf(members: readonly MemberRow[], { advantages }: CreditedGroup): Record<string, Credit> {
  const credits: Record<string, Credit> = {};
  for (const [at, { id, reward, is_truncated }] of members.entries()) {
    if (reward === null) continue;
    const outcome = is_truncated === 1 ? "truncated" : "scored";
    credits[id] = { reward, advantage: advantages[at] ?? null, outcome };
  }
  return credits;
}

function factsOf({ group, members, made }: Arrival): GroupFacts {
  const whose = memberOf(members);
  const rollouts = members.map((member) => {
    const samples = made?.samples.filter(({ rollout_id }) => rollout_id === member.id) ?? [];
    return {
      reward: member.reward,
      outcome: member.outcome ?? "failed",
      is_truncated: member.is_truncated === 1,
      lengths: made?.lengths[member.id] ?? null,
      samples: samples.length,
      policy_version_end: samples.reduce(
        (newest, { policy_version_end }) => Math.max(newest, policy_version_end),
        group.dispatch_version,
      ),
      error: member.outcome === "failed" ? member.reason : null,
    };
  });
  const { transitions, untrainable, flagged, filtered, prompts } = made ?? {};
  const found = { ...(flagged && { flagged }), ...(filtered && { filtered }), ...(prompts && { prompts }) };
  const known = { ...(transitions && { transitions }), ...(untrainable && { untrainable }), ...found };
  const { dispatch_version } = group;
  return { ...(whose !== null && { member: whose }), dispatch_version, rollouts, ...known };
}

/** The counts of every group, also of dropped ones. */
function noteArrival(training: TrainingState, { made }: Arrival): TrainingState {
  if (made === null) return training;
  const transitions = together(training.transitions, made.transitions);
  const branches = together(training.branches, made.branches);
  const untrainable = plusAll(training.untrainable, made.untrainable);
  const seen = withSeen(training.seen, made);
  return { ...training, transitions, branches, untrainable, seen, ...withCounted(training, made) };
}

/** Nothing in a run without filters whose prompts are messages. */
function withCounted(
  training: TrainingState,
  { flagged, filtered, prompts }: GroupSamples,
): Pick<TrainingState, "flagged" | "filtered" | "prompts"> {
  return {
    ...(flagged !== undefined && { flagged: plusAll(training.flagged ?? {}, flagged) }),
    ...(filtered !== undefined && { filtered: plusAll(training.filtered ?? {}, filtered) }),
    ...(prompts !== undefined && { prompts: plusAll(training.prompts ?? {}, prompts) }),
  };
}

function together(one: GroupSamples["transitions"], other: GroupSamples["transitions"]): GroupSamples["transitions"] {
  return {
    clean: one.clean + other.clean,
    forked: one.forked + other.forked,
    realigned: one.realigned + other.realigned,
  };
}

function countedIn(
  training: TrainingState,
  reason: Dropped | null,
  columns: ReturnType<typeof columnsOf>,
  size: number,
): TrainingState {
  const closed = { ...training, groups_open: training.groups_open - 1, ...withoutOpen(training, size) };
  if (reason !== null) return withDropped(closed, reason, size);
  return { ...closed, buffered: withGroup(training.buffered, columns, 1) };
}

/** Counts the tokens of groups that are not trained on, too: a run may begin with many of them. */
function withSeen(seen: TrainingState["seen"], { samples, lengths }: GroupSamples): TrainingState["seen"] {
  const totals = Object.values(lengths).map(({ total }) => total);
  const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0);
  const tokens = sum(samples.length > 0 ? samples.map((one) => one.tokens) : totals);
  if (tokens === 0) return seen;
  const made = new Set(samples.map(({ rollout_id }) => rollout_id)).size;
  return { rollouts: seen.rollouts + (made || totals.length), tokens: seen.tokens + tokens };
}

/** The buffer with one group more (`by` 1) or less (-1). */
export function withGroup(buffered: Buffered, group: Omit<Buffered, "groups">, by: 1 | -1): Buffered {
  return {
    groups: buffered.groups + by,
    rollouts: buffered.rollouts + by * group.rollouts,
    samples: buffered.samples + by * group.samples,
    tokens: buffered.tokens + by * group.tokens,
    bytes: buffered.bytes + by * group.bytes,
  };
}

/** Null: the group can be trained on. */
function barrenCause({ samples }: { readonly samples: number }): Dropped | null {
  return samples > 0 ? null : "zero_variance";
}

function giveUpIfBarren(
  store: RunStore,
  spec: RunSpec,
  asked: TrainingSpec,
  { size, cause }: { readonly size: number; readonly cause: Dropped | null },
): void {
  const head = store.head();
  const { training } = head;
  if (training === null || cause === "unused" || cause === "version_reset") return;
  if (cause === null) {
    store.saveHead({ ...head, training: { ...training, barren: 0, barren_causes: {} } });
    return;
  }
  const barren = training.barren + size;
  const barren_causes = plus(training.barren_causes, cause);
  store.saveHead({ ...head, training: { ...training, barren, barren_causes } });
  // One batch has a group at least, however large the group is.
  const batch = Math.max(stepRollouts(spec, asked, training), largestGroup(spec));
  if (barren >= MOST_BARREN_BATCHES * batch) {
    failBarren(store, `${barren} rollouts in a row`, barren_causes);
  }
}

/** A batch of this many groups was cut and is empty: groups with anything to train on would be in it. */
export function noteEmpty(store: RunStore, groups: number): void {
  const head = store.head();
  if (head.training === null) return;
  const empty = head.training.empty + 1;
  store.saveHead({ ...head, training: { ...head.training, empty } });
  if (empty >= MOST_BARREN_BATCHES) {
    failBarren(store, `${empty} batches in a row`, { zero_variance: groups });
  }
}

const CAUSES: { readonly [Reason in Dropped]?: string } = {
  zero_variance: "all rewards of the group were equal: the tasks are too easy or too hard for the model",
  too_few: "fewer members were scored than min_group_size",
  untrainable:
    "no token ids, no logprobs, no reference logprobs, or an unknown or unpublished version: see training.samples.untrainable",
  filtered: "the filters of single rollouts left none of its rollouts: see training.samples.filtered",
  stale: "older than max_off_policy_steps",
};

function failBarren(store: RunStore, what: string, dropped: Counts): void {
  const head = store.head();
  const causes = Object.entries(dropped)
    .map(([reason, n]) => `${n} ${n === 1 ? "group" : "groups"} ${reason}${whyOf(reason)}`)
    .join("; ");
  const message = `${what} gave nothing to train on: ${causes}`;
  const stop = head.stop ?? ({ kind: "fail", code: "nothing_to_train", message } as const);
  store.saveHead({ ...head, stop, row_current: false });
}

function whyOf(reason: string): string {
  const why = Object.entries(CAUSES).find(([name]) => name === reason)?.[1];
  return why === undefined ? "" : ` (${why})`;
}
