/** What the API says when it refuses: a closed list of codes, in the envelope of OpenAI's errors. */
import * as z from "zod";
import { named } from "./primitives.ts";

export const ERROR_CODES = [
  "invalid_request",
  "invalid_row",
  "unknown_field",
  "not_found",
  "unmet_need",
  "missing_judge",
  "idempotency_conflict",
  "in_progress",
  "insufficient_balance",
  "rate_limited",
  "too_large",
  "unauthorized",
  "forbidden",
  "invalid_signature",
  "stale_timestamp",
  "epoch_fenced",
  "step_mismatch",
  "lease_lost",
  "wrong_lease_token",
  "wrong_batch",
  "version_ahead",
  "batch_void",
  "run_finished",
  "url_not_allowed",
  "conflict",
  "run_unreadable",
  "storage_full",
  "internal",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

export const ApiError = named("Error", {
  error: z.object({
    code: z.enum(ERROR_CODES),
    message: z.string(),
    param: z.string().nullable(),
    type: z.string(),
    next_step: z
      .int()
      .optional()
      .describe("with `step_mismatch` the step to ask for, with `version_ahead` the one to acknowledge"),
    published: z.int().optional().describe("with `conflict` at a registration: reset_to goes back behind it"),
    epoch: z.int().optional().describe("with `epoch_fenced`: the one that goes on"),
  }),
});
export type ApiError = z.infer<typeof ApiError>;
/** What an error says beside its sentence, for a program to go on with. */
export type ErrorDetails = Pick<ApiError["error"], "next_step" | "published" | "epoch">;
