/**
 * Members of a group of environments with settings of their own in a training run: how often their groups are opened,
 * how large those are, and how their rollouts are credited.
 *
 * Invariants. The order of members depends only on their ratios, the seed and the groups opened so far, so a resumed
 * run continues it. After any number of groups each member's count differs from its share by less than one group.
 * Each row belongs to one member.
 */
import type { MemberRows } from "../../contract/member-rows.ts";
import { seededWords } from "../../contract/random.ts";
import type { MemberShare, TrainedMember, TrainingSpec } from "../../contract/training-request.ts";
import { permute, shuffledOrder } from "../shuffle.ts";
import type { GroupRules } from "./advantage.ts";

/** A member whose groups are opened by its ratio. */
export type SharedMember = TrainedMember & { readonly share: MemberShare };

/** The members whose groups are opened by ratio; null if groups are opened in the order of the rows. */
export function sharedMembers(training: Pick<TrainingSpec, "members"> | undefined): readonly SharedMember[] | null {
  const members = training?.members ?? [];
  const shared = members.filter((member): member is SharedMember => member.share !== undefined);
  return shared.length === 0 ? null : shared;
}

/** The size of the largest group that the run opens. */
export function largestGroup(spec: {
  readonly rollouts_per_example: number;
  readonly training?: Pick<TrainingSpec, "members"> | undefined;
}): number {
  const sizes = (spec.training?.members ?? []).map(({ group_size }) => group_size);
  return sizes.length === 0 ? spec.rollouts_per_example : Math.max(...sizes);
}

/** The size of the groups of `member`. */
export function groupSizeOf(
  spec: { readonly rollouts_per_example: number; readonly training?: Pick<TrainingSpec, "members"> | undefined },
  member: string | null,
): number {
  return memberNamed(spec.training, member)?.group_size ?? spec.rollouts_per_example;
}

/** How a group of `member` is credited. */
export function rulesOf<Training extends GroupRules & Pick<TrainingSpec, "members">>(
  training: Training,
  member: string | null,
): GroupRules {
  const own = memberNamed(training, member);
  if (own === null) return training;
  return { ...training, advantage: own.advantage, min_group_size: own.min_group_size };
}

function memberNamed(training: Pick<TrainingSpec, "members"> | undefined, member: string | null): TrainedMember | null {
  return training?.members?.find(({ name }) => name === member) ?? null;
}

/**
 * The index of the member whose group is opened next. `opened`: how many groups of each are open or were. Tijdeman's
 * algorithm ("The chairman assignment problem", 1980): with M members, each count differs from its share by at most
 * 1 - 1/(2M-2). `order`: which member is first if several are equally late.
 */
export function nextMember(ratios: readonly number[], opened: readonly number[], order: readonly number[]): number {
  const sum = ratios.reduce((total, ratio) => total + ratio, 0);
  const next = opened.reduce((total, count) => total + count, 1);
  const slack = 1 / Math.max(2, 2 * ratios.length - 2);
  let best = { at: order[0] ?? 0, due: Number.POSITIVE_INFINITY };
  let latest = { at: order[0] ?? 0, behind: Number.NEGATIVE_INFINITY };
  for (const at of order) {
    const share = (ratios[at] ?? 0) / sum;
    const behind = share * next - (opened[at] ?? 0);
    if (behind > latest.behind) latest = { at, behind };
    const due = (1 - slack - behind) / share;
    if (behind >= slack && due < best.due) best = { at, due };
  }
  // Rounding may leave no member that is behind by the slack: then it is the one that is behind most.
  return best.due === Number.POSITIVE_INFINITY ? latest.at : best.at;
}

/** The order in which equally late members are taken. */
export function memberOrder(count: number, seed: number): number[] {
  return shuffledOrder(count, seededWords("members", seed, count));
}

/** The number of the dataset's row that is row `index` of a member. */
export function rowOfMember({ first, step }: MemberRows, index: number): number {
  return first + step * index;
}

/** The member that a row of the dataset belongs to, and the row's index in it; null if it belongs to none. */
export function memberOfRow(
  members: readonly SharedMember[],
  row: number,
): { readonly member: SharedMember; readonly index: number } | null {
  for (const member of members) {
    const { first, step, length } = member.share.rows;
    const index = (row - first) / step;
    if (Number.isInteger(index) && index >= 0 && (length === null || index < length)) return { member, index };
  }
  return null;
}

/** The row that a run plays at a row's place: with `shuffle`, the rows of each member are shuffled among themselves. */
export function shuffledRow(members: readonly SharedMember[], row: number, seed: number): number {
  const found = memberOfRow(members, row);
  const rows = found?.member.share.rows;
  if (found === null || rows === undefined || rows.length === null) return row;
  return rowOfMember(rows, permute(found.index, rows.length, seed));
}
