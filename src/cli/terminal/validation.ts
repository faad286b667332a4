/** Prints what a validation found. */
import type { PlayedJudgement } from "../../core/validation/judgements.ts";
import type { Check } from "../../core/validation/validate.ts";

const MARKS: Readonly<Record<Check["status"], string>> = {
  ok: "✓",
  warning: "!",
  error: "✗",
  unchecked: "?",
  skipped: "–",
};
const MOST_QUESTIONS = 10;

interface Means {
  readonly [policy: string]: { readonly mean: number | null; readonly n: number };
}

export function validationLines(
  checks: readonly Check[],
  policies: Means,
  judgements: readonly PlayedJudgement[] = [],
): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(({ name, status, message }) => `${MARKS[status]} ${name.padEnd(width)}  ${message}`);
  const means = Object.entries(policies).map(([name, { mean, n }]) => {
    return mean === null ? `${name} –` : `${name} ${mean.toFixed(3)} (${n})`;
  });
  return [...lines, "", `mean rewards: ${means.join(", ")}`, ...judgementLines(judgements)].join("\n");
}

/** A line for each question: the rewards that its judgements give. */
function judgementLines(judgements: readonly PlayedJudgement[]): string[] {
  const questions = [...Map.groupBy(judgements, ({ question }) => question).values()];
  const lines = questions.slice(0, MOST_QUESTIONS).map((played) => {
    const each = played.map(({ judgement, reward }) => `${judgement} ${reward === null ? "–" : reward.toFixed(3)}`);
    return `rewards by the judge ${played[0]?.judge}: ${each.join(", ")}`;
  });
  const left = questions.length - lines.length;
  return left > 0 ? [...lines, `${left} more questions: see --json`] : lines;
}
