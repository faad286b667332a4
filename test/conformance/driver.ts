/** A driver runs one kind of vector against the product. It reads its input first: a vector it cannot read is no failure
 * of the product, and never passes as one that was wanted. */
import type * as z from "zod";

export interface Driver {
  /** The call to make. Throws when the input is not of the kind. */
  prepare(input: unknown): () => unknown;
}
export type Drivers = Readonly<Record<string, Driver>>;

/** What `run` returns (or resolves to) is compared; what it throws is a failure, which a vector may want. */
export function driver<Input>(schema: z.ZodType<Input>, run: (input: Input) => unknown): Driver {
  return {
    prepare: (input) => {
      const parsed = schema.parse(input);
      return () => run(parsed);
    },
  };
}
