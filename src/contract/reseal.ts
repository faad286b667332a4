/** The result of one call of resealing. */
import * as z from "zod";
import { Count, EXAMPLE, named } from "./primitives.ts";

/** The kinds of sealed values, in the order in which they are processed. */
export const SEALED_KINDS = [
  ...["endpoint", "replica", "replica_control", "secret", "push_secret", "webhook_secret", "trigger"],
] as const;
export type SealedKind = (typeof SEALED_KINDS)[number];

/** The kind and the id of a value, and the number of its D1 database if that is not 0. */
const Place = z.string().regex(new RegExp(`^(${SEALED_KINDS.join("|")}):[\\w-]{1,200}(:[1-9][0-9]?)?$`));

export const ResealQuery = z.strictObject({
  after: Place.optional()
    .describe("`next` of the previous call, to continue there")
    .meta({ example: `secret:${EXAMPLE.secret}` }),
});
export type ResealQuery = z.infer<typeof ResealQuery>;

export const UnopenedValue = named("UnopenedValue", {
  kind: z.enum(SEALED_KINDS).describe("kind of value: `push_secret` of a run, `replica_control` of a replica").meta({
    example: "secret",
  }),
  id: z.string().meta({ example: EXAMPLE.secret }),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  project_id: z.string().meta({ example: EXAMPLE.project }),
  reason: z
    .enum(["unknown_key", "damaged"])
    .describe("sealed under a secret that the deployment does not have, or the value cannot be decrypted"),
});
export type UnopenedValue = z.infer<typeof UnopenedValue>;

export const Resealed = named("Resealed", {
  object: z.literal("reseal"),
  resealed: Count.describe("values that this call sealed under the current secret").meta({ example: 99 }),
  unopened: z
    .array(UnopenedValue)
    .describe("values that this call could not decrypt and left unchanged: set them again"),
  remaining: Count.describe("values of all kinds that are still sealed under an earlier secret").meta({ example: 0 }),
  lost: Count.describe("values of all kinds sealed under a secret that the deployment does not have").meta({
    example: 1,
  }),
  next: z
    .string()
    .nullable()
    .describe("`after` of the next call; null once all values were checked")
    .meta({ example: null }),
});
export type Resealed = z.infer<typeof Resealed>;
