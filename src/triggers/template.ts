/**
 * Checks a trigger's run before the first payload: placeholders stand for payload values, so the rest can be checked.
 */
import { isRecord, type Json, type JsonObject } from "../contract/json.ts";
import { RunRequest } from "../contract/run.ts";
import type { Issue } from "../core/schema/issue-reasons.ts";
import { firstIssue, flatIssues, type IssueText, issueText } from "../core/schema/issues.ts";
import { filled, NO_KEY } from "./mapping.ts";
import { readPayloadPath, readTarget } from "./payload-path.ts";

/** Tried one after another in place of a payload value. */
const PLACEHOLDERS: readonly Json[] = ["placeholder", 1, true, {}, "pull"];

type RefusedTemplate = { readonly ok: false; readonly error: IssueText };
/** `sample`: the run with placeholders; null if a field accepts none, so that only a payload can be checked. */
export type CheckedTemplate = { readonly ok: true; readonly sample: RunRequest | null } | RefusedTemplate;

/** Parses the request as POST /v1/runs does, or returns the error. */
export function readRun(request: JsonObject): { readonly ok: true; readonly value: RunRequest } | RefusedTemplate {
  const parsed = RunRequest.safeParse(request);
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, error: issueText(parsed.error, request) };
}

/** Checks a template with its map and conditions, without a payload. */
export function checkTemplate(
  run: JsonObject,
  map: Readonly<Record<string, string>>,
  when: JsonObject,
): CheckedTemplate {
  const path = badPath(map, when) ?? keptKey(run, map);
  if (path !== null) return { ok: false, error: path };
  const targets = Object.keys(map);
  const tried = new Map(targets.map((target) => [target, 0]));
  for (;;) {
    const filling = Object.fromEntries([...tried].map(([target, at]) => [target, PLACEHOLDERS[at] ?? null]));
    const request = filled(run, filling);
    if (!request.ok) return refusedTemplate(request.message, request.param);
    const parsed = RunRequest.safeParse(request.value);
    if (parsed.success) return { ok: true, sample: parsed.data };
    const issues = flatIssues(parsed.error);
    const wrong = wrongItself(issues, targets, request.value);
    if (wrong !== null) return { ok: false, error: wrong };
    const unfit = targets.filter((target) => issues.some(({ path: at }) => isWithin(at, target)));
    for (const target of unfit) tried.set(target, (tried.get(target) ?? 0) + 1);
    if ([...tried.values()].some((at) => at >= PLACEHOLDERS.length)) return { ok: true, sample: null };
  }
}

/** An error that no payload can correct; null if all errors are in mapped fields. */
function wrongItself(issues: readonly Issue[], targets: readonly string[], request: JsonObject): IssueText | null {
  const undeclared = targets.find((target) => issues.some((issue) => leavesOut(issue, target)));
  if (undeclared !== undefined) {
    return refusedTemplate(`map.${undeclared}: is not a field of a run`, `map.${undeclared}`).error;
  }
  const others = issues.filter(({ path }) => !targets.some((target) => isWithin(path, target)));
  return others.length === 0 ? null : within("run", firstIssue(others, request));
}

/** The same error, for a member of an object. */
export function within(name: string, { code, message, param }: IssueText): IssueText {
  return { code, message: `${name}.${message}`, param: param === null ? name : `${name}.${param}` };
}

function badPath(map: Readonly<Record<string, string>>, when: JsonObject): IssueText | null {
  for (const path of Object.keys(when)) {
    const read = readPayloadPath(path);
    if (!read.ok) return refusedTemplate(`when: ${JSON.stringify(path)} ${read.message}`, "when").error;
  }
  for (const [target, path] of Object.entries(map)) {
    const [to, from] = [readTarget(target), readPayloadPath(path)];
    if (!to.ok) return refusedTemplate(`map: ${JSON.stringify(target)} ${to.message}`, "map").error;
    if (!from.ok)
      return refusedTemplate(`map.${target}: ${JSON.stringify(path)} ${from.message}`, `map.${target}`).error;
    if (target === "kind") return refusedTemplate("map.kind: a trigger starts runs of one kind", "map.kind").error;
    const above = Object.keys(map).find((other) => target.startsWith(`${other}.`));
    if (above !== undefined)
      return refusedTemplate(`map.${target}: is inside ${above}, which is also mapped`, `map.${target}`).error;
  }
  return null;
}

/** A template is stored and shown unencrypted, so it must not contain a key. */
function keptKey(run: JsonObject, map: Readonly<Record<string, string>>): IssueText | null {
  const judges = isRecord(run["judges"]) ? Object.entries(run["judges"]) : [];
  const places: [string, unknown][] = [
    ["endpoint", run["endpoint"]],
    ...judges.map(([name, judge]): [string, unknown] => [
      `judges.${name}.endpoint`,
      isRecord(judge) ? judge["endpoint"] : null,
    ]),
  ];
  const found = places.find(([, endpoint]) => isRecord(endpoint) && Object.hasOwn(endpoint, "api_key"));
  const mapped = Object.keys(map).find((target) => target.endsWith(".api_key"));
  if (found === undefined && mapped === undefined) return null;
  const param = found === undefined ? `map.${mapped}` : `run.${found[0]}.api_key`;
  return refusedTemplate(`${param}: ${NO_KEY}`, param).error;
}

/** Whether the issue says that the run has no such field. */
function leavesOut(issue: Issue, target: string): boolean {
  if (issue.code !== "unrecognized_keys") return false;
  const names = target.split(".");
  return isPrefix(issue.path, names) && issue.keys.includes(names[issue.path.length] ?? "");
}

function isWithin(path: readonly PropertyKey[], target: string): boolean {
  return isPrefix(target.split("."), path);
}

function isPrefix(short: readonly PropertyKey[], long: readonly PropertyKey[]): boolean {
  return short.length <= long.length && short.every((name, at) => name === long[at]);
}

function refusedTemplate(message: string, param: string): RefusedTemplate {
  return { ok: false, error: { code: "invalid_request", message, param } };
}
