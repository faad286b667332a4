/**
 * Where rows come from.
 *
 * Invariants. A dataset is lazy: no row is made or parsed before it is asked for, and a generated one never ends.
 */
import type * as z from "zod";

export interface Dataset<Task> {
  readonly schema: z.ZodType<Task>;
  readonly kind: "uploaded" | "rows" | "generated";
  /** Rows; null when it never ends, or when they come with the run. */
  readonly length: number | null;
  /** Row `index` before the schema has read it. Throws RangeError where rows come with the run. */
  readonly make: (index: number, random: () => number) => unknown;
}

type RowMaker<Row> = (index: number, random: () => number) => Row;
type RowSource<Row> =
  | "uploaded"
  | readonly Row[]
  | RowMaker<Row>
  /** Rows with an end that are made one by one, when they are asked for. */
  | { readonly length: number; readonly row: RowMaker<Row> }
  /** Rows that are all made when the first one is asked for, once. */
  | { readonly rows: () => readonly Row[] };

/**
 * Rows that come with the run ("uploaded"), rows given here, a function that makes row i without end, or, lazily,
 * `{ length, row }` or `{ rows }`.
 */
export function dataset<Task, Row>(schema: z.ZodType<Task, Row>, source: RowSource<NoInfer<Row>>): Dataset<Task> {
  if (source === "uploaded") {
    const make = () => {
      throw new RangeError("uploaded rows come with the run");
    };
    return { schema, kind: "uploaded", length: null, make };
  }
  if (typeof source === "function") {
    return { schema, kind: "generated", length: null, make: source };
  }
  if (isRowList(source)) return fromList(schema, () => source);
  if ("rows" in source) return fromList(schema, once(source.rows));
  if (!Number.isSafeInteger(source.length) || source.length < 0) {
    throw new RangeError(`a dataset of ${source.length} rows`);
  }
  return { schema, kind: "rows", length: source.length, make: source.row };
}

function fromList<Task, Row>(schema: z.ZodType<Task>, rows: () => readonly Row[]): Dataset<Task> {
  return {
    schema,
    kind: "rows",
    get length() {
      return rows().length;
    },
    make: (index) => rows()[index],
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** `Array.isArray` does not narrow a readonly array out of a union. */
function isRowList<Row>(source: RowSource<Row>): source is readonly Row[] {
  return Array.isArray(source);
}
