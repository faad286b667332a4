/**
 * Builds the samples of a whole group in a training run: gzipped, one R2 object per group.
 *
 * Invariants. Only scored members give samples, and a group that is not trained on stores nothing. An object is named
 * after its bytes, so a repeat writes the same object. A rollout whose samples cannot be built keeps its score and is
 * counted by cause. An unavailable store is not such a cause: the group is then scored again.
 */

import { trainingSampling } from "../../contract/sampling.ts";
import type { FleetCallNote, StoredTurn, Trajectory } from "../../contract/trajectory.ts";
import type { EnvironmentCode } from "../../core/protocol/environment-code.ts";
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import { creditGroup, type Lengths } from "../../core/training/advantage.ts";
import { rulesOf } from "../../core/training/members.ts";
import type { ServedWeights } from "../../core/training/numbering.ts";
import { applyFilters, type Filtered } from "../../core/training/sample-filters.ts";
import { encodeRows, formatOf, rowsOf, type SampleRow, sampleFault } from "../../core/training/sample-row.ts";
import { samplesOf } from "../../core/training/samples.ts";
import { playerOf } from "../environment/make-task.ts";
import { PROCESS_SCHEDULER, stepsOfTokens } from "../kit/fair-scheduler.ts";
import { idsOf, logError } from "../kit/log.ts";
import { sampleKey, trainerObject } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { fleets } from "../kit/slice-hooks.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { PastCall } from "../messages/run-fleet.ts";
import type { GroupSamples, SampleNote, TrainingSpec } from "../messages/training-wire.ts";
import type { RunSpec, ScoredMember } from "../messages/wire.ts";
import { FIRST_SERVED } from "../trainer/weight-versions.ts";
import { addReferences, NO_REFERENCE, type ReferenceResults } from "./references.ts";

/** A member, with its record and its trajectory. */
interface ScoredTrajectory {
  readonly member: ScoredMember;
  readonly trajectory: Trajectory;
}

interface Read extends ScoredTrajectory, Filtered {
  readonly rows: readonly SampleRow[];
  readonly cause: string | null;
  readonly lengths: Lengths;
  readonly transitions: GroupSamples["transitions"];
  readonly branches: GroupSamples["transitions"];
  /** The member of a group of environments that plays it; null if there is none, or if it is unreadable. */
  readonly player: string | null;
}

const NONE = { clean: 0, forked: 0, realigned: 0 };
/** The cause for a member whose stored tokens cannot be read by this code. */
const UNREADABLE = "unreadable";

/** `members` and `trajectories` have the same order. */
export interface ScoredGroup {
  /** The answers of the run's reference so far; absent: none. */
  readonly references?: ReferenceResults | undefined;
  readonly members: readonly ScoredMember[];
  readonly trajectories: readonly Trajectory[];
  /** The highest version that weights can have now. */
  readonly newest_version?: number | undefined;
  readonly weights?: SamplingWeights | undefined;
}

/** Which weights sampled: on an endpoint by the times they were served, on a fleet per turn. */
export interface SamplingWeights {
  /** What engines served, in order. */
  readonly served?: readonly ServedWeights[];
  /** The version that sampled each turn, by rollout id; null if it is unknown. */
  readonly stamped?: ReadonlyMap<string, readonly (number | null)[]>;
}

type Sampled = Pick<Trajectory, "rollout_id"> & { readonly turns: readonly Pick<StoredTurn, "fleet_call">[] };

/** How many calls one request to a fleet contains. */
const CALLS_ASKED = 2000;

/** The weights for rollouts that are scored together; undefined in a run that trains nothing. */
export async function weightsOf(
  env: Env,
  { scope, run_id, training, fleet }: RunSpec,
  trajectories: readonly Sampled[],
  subrequests: Subrequests,
): Promise<SamplingWeights | undefined> {
  if (training === undefined) return undefined;
  if (fleet === undefined) {
    const served = await subrequests.object(() => trainerObject(env, scope, run_id).served());
    return { served: served ?? [FIRST_SERVED] };
  }
  const calls = trajectories.flatMap(({ turns }) => turns.flatMap(({ fleet_call }) => fleet_call ?? []));
  const versions: (number | null)[] = [];
  for (let at = 0; at < calls.length; at += CALLS_ASKED) {
    const asked = calls.slice(at, at + CALLS_ASKED).map(pastCall);
    versions.push(...(await subrequests.object(() => fleets().object(env, scope, fleet.id).versions(run_id, asked))));
  }
  return { stamped: byTurn(trajectories, versions) };
}

function pastCall({ replica_id, number, end, model }: FleetCallNote): PastCall {
  return { replica_id, number, end, model };
}

/** `versions`: those of the turns that a fleet was asked about, in order. */
function byTurn(
  trajectories: readonly Sampled[],
  versions: readonly (number | null)[],
): ReadonlyMap<string, readonly (number | null)[]> {
  let at = 0;
  const next = () => versions[at++] ?? null;
  return new Map(
    trajectories.map(({ rollout_id, turns }) => [
      rollout_id,
      turns.map(({ fleet_call }) => (fleet_call === undefined ? null : next())),
    ]),
  );
}

export interface MadeSamples {
  /** Null in a run that trains nothing, and as long as something is pending. */
  readonly samples: GroupSamples | null;
  /** What the run's reference must be asked first. */
  readonly pending: readonly JudgeAsk[];
}

const NOTHING_MADE: MadeSamples = { samples: null, pending: [] };

/** Throws if the object cannot be stored now. */
export async function samplesOfGroup(
  env: Env,
  spec: RunSpec,
  environment: EnvironmentCode,
  { members, trajectories, newest_version, weights, references = new Map() }: ScoredGroup,
  subrequests: Subrequests,
): Promise<MadeSamples> {
  const { training } = spec;
  const first = members[0];
  if (training === undefined || first === undefined) return NOTHING_MADE;
  const read: Read[] = [];
  for (const [at, member] of members.entries()) {
    const trajectory = trajectories[at];
    if (member.record.reward === null || trajectory === undefined) continue;
    const one = await readMember(spec, environment, { member, trajectory }, { newest_version, weights });
    read.push({ ...one, ...applyFilters(training.sample_filters ?? [], one.rows) });
    await PROCESS_SCHEDULER.spend(spec.scope.orgId, stepsOfTokens(one.lengths.total), true);
  }
  const kept = trains(training, read) ? read.filter(({ left_out_by }) => left_out_by === null) : [];
  const { members: trained, without, pending } = await addReferences(env, spec, kept, references, subrequests);
  if (pending.length > 0) return { samples: null, pending };
  const rows = trained.flatMap((member) => member.rows);
  const samples = {
    group: first.group,
    object: rows.length === 0 ? null : await storeSamples(env, spec, training, rows, subrequests),
    samples: rows.map(noteOf),
    untrainable: countsOf([...read.flatMap(({ cause }) => cause ?? []), ...Array<string>(without).fill(NO_REFERENCE)]),
    ...(training.sample_filters !== undefined && {
      flagged: countsOf(read.flatMap(({ flagged }) => flagged)),
      filtered: countsOf(read.flatMap(({ left_out_by }) => left_out_by ?? [])),
    }),
    branches: sumOf(trained.map(({ rows: own, branches }) => (own.length > 0 ? branches : NONE))),
    transitions: sumOf(read.map(({ transitions }) => transitions)),
    ...(spec.prompts && { prompts: countsOf(read.flatMap(sentPrompts)) }),
    lengths: Object.fromEntries(read.map(({ trajectory, lengths }) => [trajectory.rollout_id, lengths])),
  };
  return { samples, pending: [] };
}

type KnownVersions = Pick<ScoredGroup, "newest_version" | "weights">;

function trains(training: TrainingSpec, read: readonly Read[]): boolean {
  const members = read.map(({ member, lengths }) => ({ reward: member.record.reward, lengths }));
  const player = read.find((one) => one.player !== null)?.player ?? null;
  return creditGroup(rulesOf(training, player), members).verdict === "train";
}

async function readMember(
  spec: RunSpec,
  environment: EnvironmentCode,
  scored: ScoredTrajectory,
  known: KnownVersions,
): Promise<Omit<Read, keyof Filtered>> {
  try {
    return { ...scored, ...(await madeOf(spec, environment, scored.trajectory, known)) };
  } catch (thrown) {
    logError("samples could not be made", { ...idsOf(spec), rollout_id: scored.trajectory.rollout_id }, thrown);
    const lengths = { output: 0, total: 0, turns: scored.trajectory.turns.length };
    const nothing = { rows: [], transitions: NONE, branches: NONE, player: null };
    return { ...scored, ...nothing, cause: UNREADABLE, lengths };
  }
}

async function madeOf(
  spec: RunSpec,
  environment: EnvironmentCode,
  trajectory: Trajectory,
  { newest_version, weights }: KnownVersions,
): Promise<Omit<Read, keyof ScoredTrajectory | keyof Filtered>> {
  const { rollout_id, turns } = trajectory;
  const dispatch_version = turns[0]?.dispatch_version ?? 0;
  const stamped = weights?.stamped?.get(rollout_id);
  const facts = { dispatch_version, newest_version, served: weights?.served, ...(stamped && { stamped }) };
  const { samples, untrainable, ...counted } = samplesOf(trajectory, facts);
  const { lengths, transitions, branches } = counted;
  const { member, sampling } = await playerOf(environment, { ...trajectory, row: trajectory.task });
  const asked = trainingSampling(sampling, spec.sampling, null);
  const rows = rowsOf(samples, {
    rollout_id,
    group_id: groupId(rollout_id),
    env: member ?? `${spec.environment.id}@${spec.environment.version}`,
    temperature: asked.temperature ?? 1,
  });
  // Either all samples of a rollout are used, or none.
  const cause = untrainable ?? rows.map(sampleFault).find((fault) => fault !== null) ?? null;
  if (cause !== null) return { rows: [], cause, lengths, transitions, branches: NONE, player: member };
  return { rows, cause, lengths, transitions, branches, player: member };
}

/** The rollout's id up to its group. */
function groupId(rolloutId: string): string {
  return rolloutId.split("_").slice(0, 3).join("_").replace(/^ro_/, "grp_");
}

async function storeSamples(
  env: Env,
  { scope, run_id }: RunSpec,
  { trainer }: TrainingSpec,
  rows: readonly SampleRow[],
  subrequests: Subrequests,
): Promise<NonNullable<GroupSamples["object"]>> {
  const bytes = await gzip(encodeRows(rows, trainer.encoding));
  const sha256 = sha256Hex(bytes);
  const key = sampleKey(scope, run_id, sha256);
  await subrequests.inTurn(() => env.STORE.put(key, bytes, { sha256 }));
  return { sha256, bytes: bytes.length, format: formatOf(trainer.encoding) };
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const zipped = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(zipped).arrayBuffer());
}

function noteOf(row: SampleRow): SampleNote {
  const { sample_id, rollout_id, policy_version_start, policy_version_end } = row;
  const trainable_tokens = row.mask.reduce((sum, bit) => sum + bit, 0);
  const tokens = row.token_ids.length;
  return {
    ...{ sample_id, rollout_id, tokens, trainable_tokens },
    ...{ policy_version_start, policy_version_end },
  };
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function sentPrompts({ trajectory }: Read): string[] {
  return trajectory.turns.flatMap(({ sent_prompt }) => sent_prompt ?? []);
}

function sumOf(all: readonly GroupSamples["transitions"][]): GroupSamples["transitions"] {
  const sum = { ...NONE };
  for (const { clean, forked, realigned } of all) {
    sum.clean += clean;
    sum.forked += forked;
    sum.realigned += realigned;
  }
  return sum;
}
