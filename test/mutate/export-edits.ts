/** Edits to a run's export: which rollouts, which pairs, and the content of a row. */
import { type Edit, editsOf } from "./edit.ts";

const TESTS = ["kernel/service/recomputed-export"];

export const EXPORT_EDITS: readonly Edit[] = [
  ...editsOf("src/contract/export.ts", TESTS, [
    ["const rejected = members.at(-1 - at);", "const rejected = members.at(-2 - at);"],
    ["rejected.reward >= chosen.reward", "rejected.reward > chosen.reward"],
    ["for (const { tool_calls, ...message }", "for (const { tool_calls, tool_call_id, ...message }"],
    ["slice(0, LIMITS.leftOutNamed)", "slice(1, LIMITS.leftOutNamed)"],
  ]),
  ...editsOf("src/contract/export.ts", TESTS, [
    ["function: { name, arguments: decoded }", "function: { name, arguments: text }"],
    ["if (!exact)", "if (exact)"],
  ]),
  ...editsOf("src/core/verifiers/row.ts", TESTS, [
    ["JSON.stringify({ id, name, arguments: given })", "JSON.stringify({ name, name, arguments: given })"],
  ]),
  ...editsOf("src/kernel/run/export-rows.ts", TESTS, [
    ["one.slot - other.slot", "other.slot - one.slot"],
    ["later.attempt >", "later.attempt <"],
    ["said = ?3 and finish_seq <", "said = ?3 and finish_seq >"],
  ]),
];
