/**
 * Prints CPU profiles of isolates that share one thread: their shares, then functions by self time and by total time. A
 * sample is taken only while its isolate runs, so samples are counted: the time between two of them may be another
 * isolate's.
 */
import type { SourceMap } from "node:module";
import type { CpuProfile } from "./inspector.ts";

const LISTED = 45;
/** An isolate with a smaller share of the thread is not listed. */
const LEAST_SHARE = 0.02;

export interface IsolateProfile {
  readonly title: string;
  readonly profile: CpuProfile;
  /** Null for code that our bundler did not make. */
  readonly map: SourceMap | null;
}

interface Counts {
  self: number;
  total: number;
}

export function hottest(isolates: readonly IsolateProfile[]): string {
  const counted = isolates.map(({ title, profile, map }) => {
    const places = countByPlace(profile, map);
    places.delete("(idle)");
    const busy = [...places.values()].reduce((sum, { self }) => sum + self, 0);
    return { title, places, busy };
  });
  const all = counted.reduce((sum, { busy }) => sum + busy, 0);
  const sorted = counted.filter(({ busy }) => busy / all >= LEAST_SHARE).sort((a, b) => b.busy - a.busy);
  const shares = sorted.map(({ title, busy }) => entry(busy / all, title));
  const lists = sorted.flatMap(({ title, places, busy }) => [
    `== ${title}: self time`,
    ...listed(places, "self", busy),
    `== ${title}: total time`,
    ...listed(places, "total", busy),
  ]);
  return ["== isolates", ...shares, ...lists, ""].join("\n");
}

function listed(places: ReadonlyMap<string, Counts>, by: keyof Counts, busy: number): string[] {
  return [...places]
    .filter(([place]) => place !== "(root)")
    .sort(([, a], [, b]) => b[by] - a[by])
    .slice(0, LISTED)
    .map(([place, counts]) => entry(counts[by] / busy, place));
}

function entry(share: number, name: string): string {
  return `${(100 * share).toFixed(1).padStart(5)} %  ${name}`;
}

function countByPlace({ nodes, samples }: CpuProfile, map: SourceMap | null) {
  const places = new Map(nodes.map((node) => [node.id, placeOf(node.callFrame, map)]));
  const parents = new Map(nodes.flatMap(({ id, children }) => (children ?? []).map((child) => [child, id] as const)));
  const counts = new Map<string, Counts>();
  const add = (place: string, by: keyof Counts) => {
    const count = counts.get(place) ?? { self: 0, total: 0 };
    count[by] += 1;
    counts.set(place, count);
  };
  for (const sample of samples) {
    add(places.get(sample) ?? "?", "self");
    // Once for each function on the stack, even if it is there several times.
    const stack = new Set<string>();
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
      stack.add(places.get(id) ?? "?");
    }
    for (const place of stack) add(place, "total");
  }
  return counts;
}

/** `name file:line` of the source; V8's own text for code outside the bundle. */
function placeOf(frame: CpuProfile["nodes"][number]["callFrame"], map: SourceMap | null): string {
  const origin = map?.findOrigin(frame.lineNumber + 1, frame.columnNumber + 1);
  if (frame.url === "" || origin === undefined || !("fileName" in origin)) {
    return [frame.functionName || "(anonymous)", frame.url].filter(Boolean).join(" ");
  }
  const file = origin.fileName.replace(/^.*?(node_modules|src|environments)\//, "$1/");
  return `${origin.name ?? frame.functionName} ${file}:${origin.lineNumber}`;
}
