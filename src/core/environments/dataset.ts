/**
 * Datasets: the sources of rows.
 *
 * Invariant. A dataset is lazy: a row is made or parsed only when it is needed, and a generated dataset may be endless.
 */
import type * as z from "zod";

export interface Dataset<Task> {
  readonly schema: z.ZodType<Task>;
  readonly kind: "uploaded" | "rows" | "generated";
  /** Number of rows; null if it is endless, or if rows come with the run. */
  readonly length: number | null;
  /** Row `index` before the schema parses it. Throws RangeError if rows come with the run. */
  readonly make: (index: number, random: () => number) => unknown;
}

type RowMaker<Row> = (index: number, random: () => number) => Row;
type RowSource<Row> =
  | "uploaded"
  | readonly Row[]
  | RowMaker<Row>
  /** A finite number of rows, each made when it is needed. */
  | { readonly length: number; readonly row: RowMaker<Row> }
  /** Rows that are all made together, once, when the first one is needed. */
  | { readonly rows: () => readonly Row[] };

/**
 * Rows that come with the run ("uploaded"), a list of rows, a function that makes row i of an endless dataset, or,
 * lazily, `{ length, row }` or `{ rows }`.
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
