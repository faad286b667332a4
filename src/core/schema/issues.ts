/** Turns zod's issues about a value into one sentence about one field. */
import type * as z from "zod";
import { formatPath, valueAt } from "../field-path.ts";
import { type Issue, reasonOf } from "./issue-reasons.ts";

export interface IssueText {
  readonly code: "unknown_field" | "invalid_request";
  readonly message: string;
  readonly param: string | null;
}

/**
 * The most helpful issue. An unknown field has precedence: a misspelt name is also reported as a missing field, and
 * only the unknown name shows the cause.
 */
export function issueText(error: z.ZodError, value: unknown): IssueText {
  return firstIssue(flatIssues(error), value);
}

/** The same for a list of issues. */
export function firstIssue(issues: readonly Issue[], value: unknown): IssueText {
  const unknown = issues.find((issue) => issue.code === "unrecognized_keys");
  if (unknown !== undefined) {
    const param = formatPath([...unknown.path, ...unknown.keys.slice(0, 1)]);
    return { code: "unknown_field", message: `${param} is not a known field`, param };
  }
  const issue = issues[0];
  const path = issue?.path ?? [];
  const absent = valueAt(value, path) === undefined && issue?.code !== "custom";
  const reason = absent ? "is required" : issue === undefined ? "is invalid" : reasonOf(issue);
  const param = path.length === 0 ? null : formatPath(path);
  const message = param === null ? reason : `${param}: ${reason}`;
  return { code: "invalid_request", message, param };
}

/** All issues; for a union, those of the intended branch. */
export function flatIssues(error: z.ZodError): Issue[] {
  return error.issues.flatMap(withoutUnions);
}

/** The issues of the intended branch of a union: the one whose type the value has. */
function withoutUnions(issue: Issue): Issue[] {
  // The name of the member is wrong, not its value.
  if (issue.code === "invalid_key") return issue.issues.map((inner) => ({ ...inner, path: issue.path }));
  if (issue.code !== "invalid_union") return [issue];
  // Branches with a discriminating field, whose value matches none of them.
  if (issue.errors.length === 0) return [{ ...issue, message: `must be one of: ${kindsOf(issue)}` }];
  const meant = issue.errors.find((branch) => !branch.some(isAboutTheType));
  if (meant === undefined) {
    const expected = issue.errors.flatMap((branch) => branch.filter(isAboutTheType));
    const types = expected.map((inner) => (inner.code === "invalid_type" ? inner.expected : ""));
    return [{ ...issue, message: `must be one of: ${types.join(", ")}` }];
  }
  return meant.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })).flatMap(withoutUnions);
}

function kindsOf(issue: Issue): string {
  const options = "options" in issue && Array.isArray(issue.options) ? issue.options : [];
  return options.filter((option) => typeof option === "string").join(", ");
}

function isAboutTheType({ code, path }: Issue): boolean {
  return code === "invalid_type" && path.length === 0;
}
