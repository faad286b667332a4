/** Prints what a validation found. */
import type { Check } from "../../core/validation/validate.ts";

const MARKS: Readonly<Record<Check["status"], string>> = { ok: "✓", warning: "!", error: "✗", skipped: "–" };

interface Means {
  readonly [policy: string]: { readonly mean: number | null; readonly n: number };
}

export function validationLines(checks: readonly Check[], policies: Means): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(({ name, status, message }) => `${MARKS[status]} ${name.padEnd(width)}  ${message}`);
  const means = Object.entries(policies).map(([name, { mean, n }]) => {
    return mean === null ? `${name} –` : `${name} ${mean.toFixed(3)} (${n})`;
  });
  return [...lines, "", `mean rewards: ${means.join(", ")}`].join("\n");
}
