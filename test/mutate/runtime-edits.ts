/** Edits to the order of writes and calls in the runtime, where a kill or a late message falls in between. */
import { type Edit, editsOf } from "./edit.ts";

export const RUNTIME_EDITS: readonly Edit[] = [
  ...editsOf(
    "src/runtime/run/training/asked-tools.ts",
    ["packages/policy/exact"],
    [["policy_version === undefined", "policy_version !== undefined"]],
  ),
  ...editsOf(
    "src/runtime/service/resolve/training.ts",
    ["runtime/run/training/requests"],
    [["error !== null && (!chat", "error === null && (!chat"]],
  ),
  ...editsOf(
    "src/runtime/run/judging/unit-state.ts",
    ["runtime/run/judging/faults"],
    [
      ["if (before.verdict !== null ||", "if (before.verdict !== before.verdict ||"],
      ['=== "claimed" && claim === by;', '=== "claimed" && claim === claim;'],
    ],
  ),
  ...editsOf(
    "src/runtime/run/judging/verdict.ts",
    ["runtime/run/judging/told-again"],
    [
      ["replies !== before.replies", "replies === before.replies"],
      ["calls !== before.calls", "calls === before.calls"],
    ],
  ),
  ...editsOf(
    "src/runtime/run/judging/unit-state.ts",
    ["runtime/run/retried-groups"],
    [["whose === null || members", "whose !== null || members"]],
  ),
  ...editsOf(
    "src/runtime/run/units.ts",
    ["runtime/run/retried-groups"],
    [["first) === null ? [] : rows;", "first) === undefined ? [] : rows;"]],
  ),
  ...editsOf(
    "src/runtime/run/accounting.ts",
    ["runtime/run/retried-groups"],
    [["if (whole_groups) store.suspects", "if (!whole_groups) store.suspects"]],
  ),
  ...editsOf(
    "src/runtime/trainer/weight-versions.ts",
    ["runtime/trainer/served-weights"],
    [
      ["appliedOf(state).min : published", "appliedOf(state).max : published"],
      ["unheard.length > 0 ? 1 : 0", "unheard.length > 9 ? 1 : 0"],
    ],
  ),
  ...editsOf(
    "src/runtime/rollout/driver.ts",
    ["runtime/trainer/served-weights"],
    [["spec.policy_version === undefined ? {}", "spec.policy_version !== undefined ? {}"]],
  ),
  ...editsOf(
    "src/runtime/trajectory/store.ts",
    ["runtime/run/delivery"],
    [["await subrequests.object(() => run.folded(", "subrequests.object(() => run.folded("]],
  ),
  ...editsOf(
    "src/runtime/run/training/news.ts",
    ["runtime/run/training/news"],
    [["snapshot.seq <= before.seq", "snapshot.seq <= 0"]],
  ),
  ...editsOf(
    "src/runtime/run/chores.ts",
    ["runtime/run/run-row"],
    [["if (store.head() === written)", "if (store.head() !== written)"]],
  ),
];
