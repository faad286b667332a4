/** What one call of resealing came to. */
import * as z from "zod";
import { Count, named } from "./primitives.ts";

export const Resealed = named("Resealed", {
  object: z.literal("reseal"),
  resealed: Count.describe("values that this call sealed under the current secret").meta({ example: 100 }),
  remaining: Count.describe("values that are still sealed under a secret before it: ask again until it is 0").meta({
    example: 0,
  }),
  lost: Count.describe("values sealed under a secret that the deployment does not hold: only setting them helps").meta({
    example: 0,
  }),
});
export type Resealed = z.infer<typeof Resealed>;
