/**
 * Edits of one token, to the core and to the data of a run, that some test must detect.
 *
 * Each represents a mistake that types do not catch. The text to replace occurs exactly once in the file, with as much
 * context around the token as necessary. The named tests must detect it: an edit that passes them shows a missing test,
 * and the fix belongs there, not here.
 */
import { BOUNDS_EDITS } from "./bounds-edits.ts";
import { CUT_POINT_EDITS } from "./cut-point-edits.ts";
import { type Edit, editsOf } from "./edit.ts";
import { EXACTNESS_EDITS } from "./exactness-edits.ts";
import { EXPORT_EDITS } from "./export-edits.ts";
import { KERNEL_EDITS } from "./kernel-edits.ts";

export const EDITS: readonly Edit[] = [
  ...editsOf(
    "src/core/rollout/rollout.ts",
    ["core/rollout/rollout", "conformance/vectors"],
    [
      [
        "{ ...rollout, prompt_too_long: true, is_truncated: true }",
        "{ ...rollout, prompt_too_long: true, is_truncated: false }",
      ],
      ['return stopNow(rollout, "timeout_reached");', 'return stop(rollout, "timeout_reached");'],
      ['is_truncated: response.finish_reason === "length" ||', 'is_truncated: response.finish_reason !== "length" ||'],
      ["const tries = free === true ? 0 : 1;", "const tries = free === true ? 1 : 1;"],
      ["error: rollout.error ?? event.error,", "error: event.error ?? event.error,"],
      ["rollout.is_truncated || rollout.turns.some(", "rollout.is_truncated && rollout.turns.some("],
      ["if (rollout.turns.length === 0) return final", "if (rollout.turns.length === 1) return final"],
      [
        "return history.slice(commonPrefix(history, rollout.prompt));",
        "return history.slice(commonPrefix(history, history));",
      ],
      ["rollout.error === null && event.error !== null", "rollout.error !== null && event.error !== null"],
    ],
  ),
  ...editsOf(
    "src/contract/trajectory.ts",
    ["contract/trajectory"],
    [
      ["filter((key) => !Object.hasOwn(after, key))", "filter((key) => !Object.hasOwn(before, key))"],
      [
        "total.completion_tokens += usage?.completion_tokens ?? 0;",
        "total.completion_tokens += usage?.prompt_tokens ?? 0;",
      ],
      ["left = Math.min(left, keep);", "left = Math.max(left, keep);"],
    ],
  ),
  ...editsOf(
    "src/core/rollout/tokens.ts",
    ["core/rollout/tokens", "conformance/vectors"],
    [
      ["previous.length <= prompt_ids.length", "previous.length < prompt_ids.length"],
      ["prompt_suffix_ids: base64OfInt32s(suffix),", "prompt_suffix_ids: base64OfInt32s(prompt_ids),"],
      ["is_truncated: prompt + completion > limit,", "is_truncated: prompt + completion >= limit,"],
      ["const room = Math.max(0, limit - prompt);", "const room = Math.max(1, limit - prompt);"],
    ],
  ),
  ...editsOf(
    "src/core/rollout/token-prompt.ts",
    ["core/rollout/token-prompt"],
    [
      ["if (one[end] !== ended) return", "if (end === -2) return"],
      ["beginsWith(one, before) && beginsWith(other, before)", "beginsWith(one, before)"],
      ["start <= before.length ||", "start < 0 ||"],
      ["changed !== undefined && !beginsWith(", "changed === undefined && !beginsWith("],
      ["const end = changed === undefined ? start :", "const end = changed === undefined ? one.indexOf(ended) :"],
      ["return one.slice(end + 1);", "return one.slice(end);"],
      ["intent.keep !== length", "intent.keep > length"],
    ],
  ),
  ...editsOf(
    "src/contract/messages.ts",
    ["conformance/vectors", "contract/messages"],
    [
      ["? id : name,", "? id : args,"],
      ["while (shared < limit && sameMessage", "while (shared <= limit && sameMessage"],
    ],
  ),
  ...editsOf(
    "src/core/parsers/xml-parser.ts",
    ["core/parsers/xml-parser"],
    [
      ["text.endsWith(close(tag))", "text.endsWith(open(tag))"],
      ["match = matchFrom(text, tag, match.end);", "match = matchFrom(text, tag, match.end + 1);"],
      ["assistantTexts(completion).reverse()", "assistantTexts(completion).slice()"],
    ],
  ),
  ...editsOf(
    "src/core/parsers/parser.ts",
    ["core/parsers/think-parser"],
    [
      ["const close = text.lastIndexOf(CLOSE);", "const close = text.indexOf(CLOSE);"],
      ["text.split(OPEN).length === 2", "text.split(OPEN).length >= 2"],
    ],
  ),
  ...editsOf(
    "packages/math-equivalence/extract.ts",
    ["core/parsers/extract"],
    [
      ["const box = text.lastIndexOf(BOX);", "const box = text.indexOf(BOX);"],
      ['if (text[at] === "{") depth += 1;', 'if (text[at] === "{") depth += 0;'],
    ],
  ),
  ...editsOf(
    "src/core/rubrics/scoring.ts",
    ["core/rubrics/score"],
    [
      ["one.score === null && one.weight !== 0", "one.score === null && one.weight === 0"],
      ["total + (score ?? 0) * weight", "total + (score ?? 0) + weight"],
      ["scores.length !== group.length", "scores.length === group.length"],
      ["return a === null || b === null ? null : a + b;", "return a === null && b === null ? null : a + b;"],
      [
        "parser: rubric.parser ?? parser ?? new Parser(),\n    ...rubric.objects",
        "parser: parser ?? parser ?? new Parser(),\n    ...rubric.objects",
      ],
    ],
  ),
  ...editsOf(
    "src/core/rubrics/score.ts",
    ["core/divergences", "core/rubrics/scoring"],
    [["advantage: step.advantage ?? rollout.advantage,", "advantage: step.reward ?? rollout.advantage,"]],
  ),
  ...editsOf(
    "src/core/training/members.ts",
    ["core/training/members"],
    [
      ["&& due < best.due", "&& due > best.due"],
      ["share * next - ", "share * next + "],
    ],
  ),
  ...editsOf(
    "src/core/training/numbering.ts",
    ["core/training/numbering"],
    [
      ["return step - 1 - published;", "return step - published;"],
      ["leadOf(progress) <= lead;", "leadOf(progress) < lead;"],
      ["return step - 1 - maxOffPolicySteps;", "return step - maxOffPolicySteps;"],
      ["now.max_off_policy_steps + 1;", "now.max_off_policy_steps + 0;"],
      ["now.published + now.lead + 1;", "now.published + now.lead + 2;"],
    ],
  ),
  ...editsOf(
    "src/core/training/numbering.ts",
    ["core/training/sample-versions"],
    [
      ["filter(({ at }) => at <= to);", "filter(({ at }) => at < to);"],
      ["first >= 0 && met.every", "first >= -1 && met.every"],
      ["version >= oldest && taken_back", "version >= 0 && taken_back"],
    ],
  ),
  ...editsOf(
    "src/core/training/samples.ts",
    ["core/training/samples"],
    [
      ["one.shared > best.shared", "one.shared < best.shared"],
      ["sample.length - shared < threshold", "sample.length - shared <= threshold"],
      ["shared >= sample.answerStart", "shared > sample.answerStart"],
    ],
  ),
  ...editsOf(
    "src/core/training/trainable.ts",
    ["core/training/sample-versions"],
    [["from: sent_at ?? answered_at", "from: answered_at ?? answered_at"]],
  ),
  ...editsOf(
    "src/kernel/trajectory/locate-turns.ts",
    ["kernel/trajectory/locate-turns.node"],
    [
      ["% 2 === 1", "% 2 === 0"],
      ["last - first === 1", "last - first === 2"],
    ],
  ),
  ...editsOf(
    "src/core/training/samples.ts",
    ["core/training/samples"],
    [["Math.min(dispatched, ...versions)", "Math.max(dispatched, ...versions)"]],
  ),
  ...editsOf(
    "src/core/training/advantage.ts",
    ["core/training/advantage"],
    [
      ['sd === "sample" ?', 'sd !== "sample" ?'],
      ["rewards.length < rules.min_group_size", "rewards.length <= rules.min_group_size"],
      ["...scored.map(({ lengths })", "...members.map(({ lengths })"],
    ],
  ),
  ...editsOf(
    "src/core/training/curriculum.ts",
    ["core/training/curriculum"],
    [["meanReward <= normal.up_to", "meanReward < normal.up_to"]],
  ),
  ...editsOf(
    "src/core/training/batch.ts",
    ["core/training/batch"],
    [["train_version: parts.step - 1,", "train_version: parts.step,"]],
  ),
  ...editsOf("src/core/training/sample-row.ts", ["core/training/sample-encoding"], [["bit > 1 ||", "bit > 2 ||"]]),
  ...editsOf(
    "src/core/rubrics/score.ts",
    ["core/rubrics/score"],
    [["member.error === null && member.cancelled === null", "member.error === null || member.cancelled === null"]],
  ),
  ...editsOf(
    "src/core/statistics/pass-at-k.ts",
    ["core/statistics/statistics"],
    [
      ["return 1 - allOf(n, n - c, k);", "return 1 - allOf(n, n + c, k);"],
      ["if (k > n) continue;", "if (k >= n) continue;"],
      ["for (let k = 1; k < attempts; k *= 2)", "for (let k = 1; k < attempts; k += 2)"],
    ],
  ),
  ...editsOf(
    "src/core/statistics/spread.ts",
    ["core/statistics/statistics"],
    [["this.#squares / (this.count - 1) / this.count", "this.#squares / (this.count - 0) / this.count"]],
  ),
  ...editsOf(
    "src/core/verifiers/metadata.ts",
    ["core/verifiers/numbers"],
    [
      ["reward === undefined ? 0 : reward", "reward === undefined ? null : reward"],
      ["Math.max(0, context - sampled)", "Math.max(1, context - sampled)"],
      ["reward >= threshold", "reward > threshold"],
    ],
  ),
  ...editsOf(
    "src/contract/output-rows.ts",
    ["contract/output-rows"],
    [["if (rows.length < (", "if (rows.length <= ("]],
  ),
  ...editsOf(
    "src/core/environments/stops.ts",
    ["core/environments/multi-turn-env"],
    [["b.priority - a.priority", "b.priority + a.priority"]],
  ),
  ...editsOf(
    "src/core/environments/environment.ts",
    ["conformance/vectors"],
    [["turn >= this.maxTurns", "turn > this.maxTurns"]],
  ),
  ...editsOf(
    "src/core/environments/tool-env.ts",
    ["core/environments/tool-env"],
    [["isError(thrown, InfraError) ||", "isError(thrown, ToolCallError) ||"]],
  ),
  ...editsOf(
    "src/core/environments/tool-env.ts",
    ["core/environments/stop-errors", "core/environments/stateful-tool-env"],
    [
      ["this.#providesHidden && !isObject(sent)", "this.#providesHidden || !isObject(sent)"],
      ["kind === ValueError ? [kind, SyntaxError]", "kind === ValueError ? [kind, TypeError]"],
    ],
  ),
  ...editsOf(
    "src/core/environments/tool.ts",
    ["core/environments/tool-schema"],
    [
      ['parameter._zod.optin === "optional" && !takes', 'parameter._zod.optin === "optional" && takes'],
      ["minimum !== Number.MIN_SAFE_INTEGER", "minimum === Number.MIN_SAFE_INTEGER"],
      ["others !== undefined && others !== false", "others !== undefined && others === false"],
    ],
  ),
  ...editsOf(
    "src/core/environments/tool-call.ts",
    ["core/environments/tool-arguments"],
    [["!needed.has(nameOf(path))", "needed.has(nameOf(path))"]],
  ),
  ...editsOf(
    "src/core/environments/tool-env.ts",
    ["core/environments/stateful-tool-env"],
    [["!hidden.includes(key)", "hidden.includes(key)"]],
  ),
  ...editsOf(
    "src/core/environments/tool-call.ts",
    ["core/environments/tool-env", "core/environments/stateful-tool-env"],
    [
      [
        "Object.entries(args).filter(([name]) => !tool.hidden.includes(name))",
        "Object.entries(args).filter(([name]) => tool.hidden.includes(name))",
      ],
    ],
  ),
  ...editsOf("src/core/rollout/harness.ts", ["core/rollout/harness"], [["unfinished ?? (", "null ?? ("]]),
  ...editsOf(
    "src/core/rollout/task.ts",
    ["core/rollout/task"],
    [["? parsed.data : [...system, ...parsed.data]", "? parsed.data : [...parsed.data, ...parsed.data]"]],
  ),
  ...editsOf(
    "src/core/statistics/paired.ts",
    ["core/statistics/paired"],
    [
      ["if (difference > 0) this.wins += 1;", "if (difference >= 0) this.wins += 1;"],
      ["i <= Math.min(b, c)", "i < Math.min(b, c)"],
    ],
  ),
  ...editsOf(
    "src/core/environments/env-group.ts",
    ["core/environments/env-group"],
    [
      ["members.size === 1", "members.size >= 1"],
      ["[name, ...routeOf(info)]", "[...routeOf(info)]"],
    ],
  ),
  ...editsOf(
    "src/contract/sampling.ts",
    ["contract/sampling", "core/divergences"],
    [["isRecord(below) && isRecord(value)", "isRecord(below) && isRecord(below)"]],
  ),
  ...editsOf(
    "src/core/rubrics/judgement-value.ts",
    ["core/rubrics/judgement"],
    [["alike?.length === 1", "alike?.length >= 1"]],
  ),
  ...editsOf(
    "src/core/redact.ts",
    ["core/redact"],
    [
      ["text.length < CUT_FROM ? end", "text.length > CUT_FROM ? end"],
      ["other.length - one.length", "other.length + one.length"],
    ],
  ),
  ...editsOf(
    "src/core/public-host.ts",
    ["core/public-host"],
    [["!PRIVATE_NAMES.test(name) && !METADATA_NAMES", "!PRIVATE_NAMES.test(name) || !METADATA_NAMES"]],
  ),
  ...EXACTNESS_EDITS,
  ...EXPORT_EDITS,
  ...KERNEL_EDITS,
  ...CUT_POINT_EDITS,
  ...BOUNDS_EDITS,
];
