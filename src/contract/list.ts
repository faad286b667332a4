/** The envelope every list of the API comes in, as OpenAI's do: the cursor of the next page is `last_id`. */
import * as z from "zod";

export function listOf<Item extends z.ZodType>(item: Item, id: string) {
  return z
    .object({
      object: z.literal("list"),
      data: z.array(item),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    })
    .meta({ id });
}
