/** What an environment requires of a run, found out without a platform. */
import * as z from "zod";
import type { ArgumentsFault } from "../core/protocol/environment-code.ts";

const Fault: z.ZodType<ArgumentsFault> = z.object({
  kind: z.enum(["unknown", "missing", "invalid"]),
  path: z.array(z.union([z.string(), z.number()])),
  message: z.string().nullable(),
});

export const Requirements = z.union([
  z.object({
    /** What is wrong with the arguments. */
    fault: Fault,
  }),
  z.object({
    fault: z.null(),
    /** The error of its code, which refuses these arguments. */
    unbuilt: z.string(),
  }),
  z.object({
    fault: z.null(),
    /** Judges that the run must set. */
    judges: z.array(z.string()).readonly(),
    /** False: the run must name a dataset. */
    hasRows: z.boolean(),
  }),
]);
export type Requirements = z.infer<typeof Requirements>;
