/** Where two JSON values first differ, and what stands there: "state.turns is 3 and then 0". */
import type { Json } from "../../contract/json.ts";

const SHOWN_CHARACTERS = 60;

/** Null when they are equal. The values are read as JSON stores them: members that are undefined do not count. */
export function firstDifference(first: Json, second: Json, path: string): string | null {
  if (JSON.stringify(first) === JSON.stringify(second)) return null;
  const members = membersOf(first);
  const others = membersOf(second);
  if (members === null || others === null || Array.isArray(first) !== Array.isArray(second)) {
    return `${path} is ${shown(first)} and then ${shown(second)}`;
  }
  const keys = new Set([...members.keys(), ...others.keys()]);
  for (const key of keys) {
    const at = Array.isArray(first) ? `${path}[${key}]` : `${path}.${key}`;
    const found = firstDifference(members.get(key) ?? null, others.get(key) ?? null, at);
    if (found !== null) return found;
  }
  // The same members in another order: equal for everyone who reads them by name.
  return null;
}

function membersOf(value: Json): ReadonlyMap<string, Json> | null {
  return value === null || typeof value !== "object" ? null : new Map(Object.entries(value));
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
