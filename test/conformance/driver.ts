/**
 * A driver runs one kind of vector against the product. It parses its input first: a vector that it cannot parse is not
 * a failure of the product, and never counts as an expected failure.
 */
import type * as z from "zod";

export interface Driver {
  /** Returns the call to make. Throws if the input is not of the kind. */
  prepare(input: unknown): () => unknown;
}
export type Drivers = Readonly<Record<string, Driver>>;

/**
 * The value that `run` returns (or resolves to) is compared; an error that it throws is a failure, which a vector may
 * expect.
 */
export function driver<Input>(schema: z.ZodType<Input>, run: (input: Input) => unknown): Driver {
  return {
    prepare: (input) => {
      const parsed = schema.parse(input);
      return () => run(parsed);
    },
  };
}
