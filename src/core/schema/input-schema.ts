/** JSON Schema of what a schema takes in, for readers of the API. What JSON Schema cannot say is left open. */
import * as z from "zod";

export function inputSchema(schema: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
}
