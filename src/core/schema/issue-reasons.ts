/** What is wrong with a value, in our own words, for an issue whose schema has no text of its own. */
import type * as z from "zod";

export type Issue = z.ZodError["issues"][number];

/** How the texts of zod begin. */
const OF_ZOD = /^(Too (small|big): |Invalid (input|option|string|number|URL)\b)/;

const TYPES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  tuple: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

const PARTS: Readonly<Record<string, string>> = { string: "characters", array: "items", set: "items" };

export function reasonOf(issue: Issue): string {
  return OF_ZOD.test(issue.message) ? (ownReason(issue) ?? issue.message) : issue.message;
}

/** Null if zod's own text is kept. */
function ownReason(issue: Issue): string | null {
  switch (issue.code) {
    case "invalid_type": {
      const type = TYPES[issue.expected];
      return type === undefined ? null : `must be ${type}`;
    }
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of: "}${issue.values.map(String).join(", ")}`;
    case "too_small":
      return tooSmall(issue.origin, issue.minimum, issue.inclusive ?? true);
    case "too_big":
      return tooBig(issue.origin, issue.maximum, issue.inclusive ?? true);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      if (issue.format === "url") return "must be a URL";
      return "pattern" in issue ? `must match the pattern ${issue.pattern}` : null;
    default:
      return null;
  }
}

function tooSmall(origin: string, least: number | bigint, inclusive: boolean): string {
  const parts = origin === "number" || origin === "int" ? undefined : (PARTS[origin] ?? "members");
  if (parts === undefined) return `must be ${inclusive ? "at least" : "more than"} ${least}`;
  return Number(least) === 1 ? "must not be empty" : `has fewer than ${least} ${parts}, the minimum`;
}

function tooBig(origin: string, most: number | bigint, inclusive: boolean): string {
  const parts = origin === "number" || origin === "int" ? undefined : (PARTS[origin] ?? "members");
  if (parts === undefined) return `must be ${inclusive ? "at most" : "less than"} ${most}`;
  return `has more than ${most} ${parts}, the maximum`;
}
