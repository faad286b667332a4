/** The audit log: who changed what in an organisation, and what came of it. */
import * as z from "zod";
import { Count, EXAMPLE, listOf, MaybeText, named, Seconds } from "./primitives.ts";

export const AuditEntry = named("AuditEntry", {
  object: z.literal("audit_entry"),
  id: z.string().describe("counts up within the organisation").meta({ example: "41" }),
  at: Seconds,
  who: z
    .string()
    .describe("the key, the person whom Access named, or the run whose trainer it was")
    .meta({ example: "key_01ks2h9q4e7mxw3f0tbn8vc5zd4w8k2hjr" }),
  action: z.string().describe("the id of the operation").meta({ example: "cancelRun" }),
  project_id: MaybeText.meta({ example: null }),
  target: MaybeText.describe("what was changed, as the request named it").meta({ example: EXAMPLE.run }),
  made: MaybeText.describe("the id of what was made").meta({ example: null }),
  request_id: z.string().meta({ example: "7f3d9c52-6a0e-4a39-9d54-5c0c2d1f7b11" }),
  status: z
    .int()
    .nullable()
    .describe("of the reply; null while it is under way, and for good where the platform stopped in the middle")
    .meta({ example: 200 }),
  released: z
    .object({ calls: Count, micros: Count })
    .optional()
    .describe("what was released of the holds of a run's lost calls, in micro-dollars; absent where nothing was"),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

export const AuditList = listOf(AuditEntry, "AuditList", "41").extend({
  dropped: Count.describe("older entries that are kept no longer").meta({ example: 0 }),
});
export type AuditList = z.infer<typeof AuditList>;
