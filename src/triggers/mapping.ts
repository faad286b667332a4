/** Evaluates a payload: whether it starts a run, and which values it fills into the run's request. */
import { findRawNumber, inexactMessage } from "../contract/exact-json.ts";
import { findOddity, type Json, type JsonObject } from "../contract/json.ts";
import { formatPath } from "../core/field-path.ts";
import { holdsMore } from "../core/schema/bounded-lists.ts";
import { readPayloadPath, readTarget, valueIn } from "./payload-path.ts";

/** The most characters of one value as JSON; below: the most JSON values in it. */
export const VALUE_CHARACTERS = 4096;
const VALUES_HELD = 512;

/** Values by the path in the run that they fill. */
export type Filling = Readonly<Record<string, Json>>;
export type Condition = { readonly path: string; readonly holds: boolean; readonly found: Json };
type Refused = { readonly ok: false; readonly message: string; readonly param: string };

/** Each condition of `when`, and whether it holds. `found`: the payload's value, or null if it is not a scalar. */
export function checkWhen(when: JsonObject, payload: Json): Condition[] {
  return Object.entries(when).map(([path, wanted]) => {
    const read = readPayloadPath(path);
    const value = read.ok ? valueIn(payload, read.steps) : undefined;
    const allowed: readonly Json[] = Array.isArray(wanted) ? wanted : [wanted];
    const holds = value !== undefined && allowed.some((one) => one === value);
    return { path, holds, found: typeof value === "object" || value === undefined ? null : value };
  });
}

/** The values that `map` takes from the payload. Refused if a path has no value, or one that is too large. */
export function fillingOf(
  map: Readonly<Record<string, string>>,
  payload: Json,
): { readonly ok: true; readonly value: Filling } | Refused {
  const taken: [string, Json][] = [];
  for (const [target, path] of Object.entries(map)) {
    const read = readPayloadPath(path);
    const value = read.ok ? valueIn(payload, read.steps) : undefined;
    if (value === undefined) return refused(target, `the payload has no value at ${path}`);
    if (holdsMore(value, VALUES_HELD) || JSON.stringify(value).length > VALUE_CHARACTERS) {
      return refused(target, `the value at ${path} is over ${VALUE_CHARACTERS} characters of JSON`);
    }
    const raw = findRawNumber(value, path);
    if (raw !== null) return refused(target, `${raw.path}: ${inexactMessage(raw.source)}`);
    const odd = findOddity(value, path);
    if (odd !== null) return refused(target, `${odd.path} ${odd.message}`);
    if (mayHoldKey(target) && holdsKey(value)) {
      return refused(target, `the value at ${path} contains a key: ${NO_KEY}`);
    }
    taken.push([target, value]);
  }
  return { ok: true, value: Object.fromEntries(taken) };
}

/** Values and the run's template are stored unencrypted. */
export const NO_KEY = "triggers cannot store keys: create an endpoint with the key and use its name";

/** Whether the field can contain an endpoint, possibly with a key. */
function mayHoldKey(target: string): boolean {
  return /^(endpoint|judges)(\.|$)/.test(target);
}

function holdsKey(value: Json): boolean {
  if (value === null || typeof value !== "object") return false;
  return Object.hasOwn(value, "api_key") || Object.values(value).some(holdsKey);
}

/** The request with the values in place. Missing objects on the path are created; other values are not replaced. */
export function filled(run: JsonObject, filling: Filling): { readonly ok: true; readonly value: JsonObject } | Refused {
  let request = run;
  for (const [target, value] of Object.entries(filling)) {
    const read = readTarget(target);
    if (!read.ok) return refused(target, read.message);
    const next = withValue(request, read.names, value);
    if (next === null) return refused(target, `${formatPath(read.names)} is not inside an object of the run`);
    request = next;
  }
  return { ok: true, value: request };
}

function withValue(within: JsonObject, [name = "", ...rest]: readonly string[], value: Json): JsonObject | null {
  if (rest.length === 0) return { ...within, [name]: value };
  const inner = Object.hasOwn(within, name) ? within[name] : {};
  if (inner === null || typeof inner !== "object" || Array.isArray(inner)) return null;
  const made = withValue(inner as JsonObject, rest, value);
  return made && { ...within, [name]: made };
}

function refused(target: string, message: string): Refused {
  return { ok: false, message: `map.${target}: ${message}`, param: `map.${target}` };
}
