/**
 * Compares a result with the recorded one.
 *
 * Invariants: numbers are equal within 1e-9. An object may have more keys than expected, except the maps listed here,
 * which must match key for key. Null must be null, not absent. Texts must be equal, except a tool call's arguments
 * (compared as JSON, because spacing differs between languages) and `error_chain_repr` (never compared). `{"$nonEmpty":
 * true}` and `{"$contains": text}` stand for text that may be worded freely.
 */
const TOLERANCE = 1e-9;

/** Kinds whose whole result is a map that must match key for key. */
const EXACT_RESULTS: ReadonlySet<string> = new Set(["xml_parse", "avg_metrics", "tool_metrics"]);
/** Members that are such maps, or lists of them, by kind. */
const EXACT_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  pass_at_k: ["pass_at_k", "pass_all_k"],
  rubric_rollout: ["metrics"],
  rubric_group: ["metrics"],
  rubric_group_of_rubrics: ["metrics"],
};

interface Place {
  readonly kind: string;
  readonly path: string;
  /** Whether an object here may have no other keys than the expected ones. */
  readonly exact: boolean;
}

/** The first difference, as a sentence; null when there is none. */
export function difference(kind: string, want: unknown, actual: unknown): string | null {
  return differs(want, actual, { kind, path: "", exact: EXACT_RESULTS.has(kind) });
}

function differs(want: unknown, actual: unknown, place: Place): string | null {
  if (typeof want === "number") {
    const close = typeof actual === "number" && Math.abs(want - actual) <= TOLERANCE;
    return close || want === actual ? null : mismatch(want, actual, place);
  }
  if (want === null || typeof want !== "object") {
    return want === actual ? null : mismatch(want, actual, place);
  }
  if (Array.isArray(want)) return listDiffers(want, actual, place);
  const matcher = matcherOf(want);
  if (matcher !== null) return matcher(actual) ? null : mismatch(want, actual, place);
  return objectDiffers(want, actual, place);
}

function listDiffers(want: readonly unknown[], actual: unknown, place: Place): string | null {
  if (!Array.isArray(actual)) return mismatch(want, actual, place);
  if (actual.length !== want.length) {
    return `${place.path || "the list"} has ${actual.length} items, wanted ${want.length}: ${show(actual)}`;
  }
  return firstOf(want.entries(), ([index, item]) =>
    differs(item, actual[index], { ...place, path: `${place.path}[${index}]` }),
  );
}

function objectDiffers(want: object, actual: unknown, place: Place): string | null {
  if (actual === null || typeof actual !== "object" || Array.isArray(actual)) {
    return mismatch(want, actual, place);
  }
  const surplus = Object.keys(actual).find((key) => !Object.hasOwn(want, key));
  if (place.exact && surplus !== undefined) {
    return `${at(place, surplus)} is there, and should not be`;
  }
  return firstOf(Object.entries(want), ([key, value]) => {
    if (place.kind === "error_data" && key === "error_chain_repr") return null;
    if (!Object.hasOwn(actual, key)) return `${at(place, key)} is missing, wanted ${show(value)}`;
    const exact = place.exact || (EXACT_MEMBERS[place.kind] ?? []).includes(key);
    const inside = { ...place, path: at(place, key), exact };
    const found: unknown = Reflect.get(actual, key);
    const isCall = place.kind === "normalize_messages" && key === "arguments";
    return isCall ? argumentsDiffer(value, found, inside) : differs(value, found, inside);
  });
}

/** Compares the text of a call's arguments, as JSON if both are JSON. */
function argumentsDiffer(want: unknown, actual: unknown, place: Place): string | null {
  const [wanted, found] = [jsonIn(want), jsonIn(actual)];
  if (wanted === null || found === null) return differs(want, actual, place);
  return differs(wanted.value, found.value, { ...place, kind: "arguments", exact: true });
}

function jsonIn(text: unknown): { readonly value: unknown } | null {
  if (typeof text !== "string") return null;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** The test of a placeholder object; null for any other object. */
function matcherOf(want: object): ((actual: unknown) => boolean) | null {
  const [[name, value] = ["", null], ...more] = Object.entries(want);
  if (more.length > 0) return null;
  if (name === "$nonEmpty") return (actual) => typeof actual === "string" && actual !== "";
  if (name !== "$contains") return null;
  const part = String(value).toLowerCase();
  return (actual) => typeof actual === "string" && actual.toLowerCase().includes(part);
}

function firstOf<T>(items: Iterable<T>, find: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = find(item);
    if (found !== null) return found;
  }
  return null;
}

function at({ path }: Place, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function mismatch(want: unknown, actual: unknown, { path }: Place): string {
  return `${path || "the result"} is ${show(actual)}, wanted ${show(want)}`;
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
