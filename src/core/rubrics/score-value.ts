/** Converts values to scores. A missing score is null with a reason, never 0. */
import { isError, ScoringError, type UnscoredCause } from "../../contract/errors.ts";

/** The reason why a function gave no score, if it is known. */
export class NoScoreError extends ScoringError {
  override readonly name: string = "NoScoreError";
  readonly unscored: UnscoredCause;

  constructor(unscored: UnscoredCause, message: string) {
    super(message);
    this.unscored = unscored;
  }
}

/** One finite decimal number, possibly with white space around it. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** Finite numbers, booleans as 1 and 0, decimal text. Throws `NoScoreError` for anything else. */
export function toScore(value: unknown): number {
  const score = asNumber(value);
  if (score === null) {
    throw new NoScoreError("scorer", `returned no score: ${describe(value)}`);
  }
  if (!Number.isFinite(score)) {
    throw new NoScoreError("non_finite", `returned ${String(value)}`);
  }
  return score;
}

export function causeOf(thrown: unknown): UnscoredCause {
  return isError(thrown, NoScoreError) ? thrown.unscored : "scorer";
}

function asNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "string" && DECIMAL.test(value.trim())) return Number(value);
  return null;
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}
