/** Edits to the order of writes and calls in the kernel, where a kill or a late message may come in between. */
import { type Edit, editsOf } from "./edit.ts";

export const KERNEL_EDITS: readonly Edit[] = [
  ...editsOf(
    "src/kernel/run/training/asked-tools.ts",
    ["packages/policy/exact"],
    [["policy_version === undefined", "policy_version !== undefined"]],
  ),
  ...editsOf(
    "src/kernel/clients/probe.ts",
    ["kernel/run/training/requests"],
    [["error !== null && (!chat", "error === null && (!chat"]],
  ),
  ...editsOf(
    "src/kernel/run/judging/scoring-group-state.ts",
    ["kernel/run/judging/faults"],
    [
      ["if (before.verdict !== null ||", "if (before.verdict !== before.verdict ||"],
      ['=== "claimed" && claim === by;', '=== "claimed" && claim === claim;'],
    ],
  ),
  ...editsOf(
    "src/kernel/run/judging/judgement.ts",
    ["kernel/run/judging/told-again"],
    [
      ["replies !== before.replies", "replies === before.replies"],
      ["calls !== before.calls", "calls === before.calls"],
    ],
  ),
  ...editsOf(
    "src/kernel/run/judging/scoring-group-state.ts",
    ["kernel/run/retried-groups"],
    [["whose === null || members", "whose !== null || members"]],
  ),
  ...editsOf(
    "src/kernel/run/scoring-groups.ts",
    ["kernel/run/retried-groups"],
    [["first) === null ? [] : rows;", "first) === undefined ? [] : rows;"]],
  ),
  ...editsOf(
    "src/kernel/run/accounting.ts",
    ["kernel/run/retried-groups"],
    [["if (whole_groups) store.quarantine", "if (!whole_groups) store.quarantine"]],
  ),
  ...editsOf(
    "src/kernel/trainer/weight-versions.ts",
    ["kernel/trainer/served-weights"],
    [
      ["appliedOf(state).min : published", "appliedOf(state).max : published"],
      ["unheard.length > 0 ? 1 : 0", "unheard.length > 9 ? 1 : 0"],
    ],
  ),
  ...editsOf(
    "src/kernel/rollout/driver.ts",
    ["kernel/trainer/served-weights"],
    [["spec.policy_version === undefined ? {}", "spec.policy_version !== undefined ? {}"]],
  ),
  ...editsOf(
    "src/kernel/trajectory/store.ts",
    ["kernel/run/delivery"],
    [["await subrequests.object(() => run.folded(", "subrequests.object(() => run.folded("]],
  ),
  ...editsOf(
    "src/kernel/run/training/news.ts",
    ["kernel/run/training/news"],
    [["snapshot.seq <= before.seq", "snapshot.seq <= 0"]],
  ),
  ...editsOf(
    "src/kernel/run/housekeeping.ts",
    ["kernel/run/run-row"],
    [["if (head === written)", "if (head !== written)"]],
  ),
];
