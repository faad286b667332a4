/**
 * The format of a file of recorded behaviours. Source: the parity suite for verifiers (commit a60a606, legacy API).
 * Fields that no test checks (`source`, `src`, `note`, …) are only for the reader.
 */
import * as z from "zod";

export const Vector = z.looseObject({
  id: z.string(),
  kind: z.string(),
  in: z.unknown(),
  out: z.unknown(),
  expected: z.unknown().optional(),
});
export type Vector = z.infer<typeof Vector>;

export const VectorFile = z.looseObject({
  total: z.int().nonnegative(),
  /** The number of vectors of each kind. */
  counts: z.record(z.string(), z.int().nonnegative()),
  vectors: z.array(Vector),
});
export type VectorFile = z.infer<typeof VectorFile>;

/** The expected result: the reference's, unless the vector says that ours differs. */
export function wanted(vector: Vector): unknown {
  return Object.hasOwn(vector, "expected") ? vector.expected : vector.out;
}

/** The differences between the file and its own counts; empty if there are none. */
export function faultsOf(file: VectorFile, kinds: ReadonlySet<string>): string[] {
  const found = new Map<string, number>();
  for (const { kind } of file.vectors) found.set(kind, (found.get(kind) ?? 0) + 1);
  const named = new Set([...found.keys(), ...Object.keys(file.counts)]);
  const miscounted = [...named].filter((kind) => (found.get(kind) ?? 0) !== (file.counts[kind] ?? 0));
  const ids = file.vectors.map(({ id }) => id);
  return [
    ...miscounted.map((kind) => `${kind}: ${found.get(kind) ?? 0} vectors, but counts says ${file.counts[kind] ?? 0}`),
    ...(ids.length === file.total ? [] : [`${ids.length} vectors, but total says ${file.total}`]),
    ...[...named].filter((kind) => !kinds.has(kind)).map((kind) => `no driver for the kind ${kind}`),
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `two vectors are named ${id}`),
  ];
}
