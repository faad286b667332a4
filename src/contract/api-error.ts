/** The errors of the API: a closed list of codes, in the envelope of OpenAI's errors. */
import * as z from "zod";
import { MaybeText, named } from "./primitives.ts";

/** Status and type of every code. A reused idempotency key is 422, as the draft standard of that header has it. */
export const STATUS_OF = {
  invalid_request: [400, "invalid_request_error"],
  invalid_row: [400, "invalid_request_error"],
  unknown_field: [400, "invalid_request_error"],
  not_found: [404, "invalid_request_error"],
  unmet_need: [400, "invalid_request_error"],
  missing_judge: [400, "invalid_request_error"],
  idempotency_conflict: [422, "invalid_request_error"],
  in_progress: [409, "invalid_request_error"],
  insufficient_balance: [402, "billing_error"],
  budget_exhausted: [402, "billing_error"],
  max_tokens_required: [422, "invalid_request_error"],
  prices_required: [422, "invalid_request_error"],
  rate_limited: [429, "rate_limit_error"],
  too_large: [413, "invalid_request_error"],
  unauthorized: [401, "authentication_error"],
  forbidden: [403, "permission_error"],
  invalid_signature: [401, "authentication_error"],
  stale_timestamp: [401, "authentication_error"],
  epoch_fenced: [409, "invalid_request_error"],
  step_mismatch: [409, "invalid_request_error"],
  lease_lost: [409, "invalid_request_error"],
  wrong_lease_token: [403, "permission_error"],
  wrong_batch: [409, "invalid_request_error"],
  version_ahead: [409, "invalid_request_error"],
  batch_void: [409, "invalid_request_error"],
  run_finished: [410, "invalid_request_error"],
  url_not_allowed: [400, "invalid_request_error"],
  conflict: [409, "invalid_request_error"],
  run_unreadable: [500, "server_error"],
  storage_full: [507, "server_error"],
  unavailable: [503, "server_error"],
  internal: [500, "server_error"],
} as const;
export type ErrorCode = keyof typeof STATUS_OF;
export const ERROR_CODES = Object.keys(STATUS_OF) as ErrorCode[];

export const ApiError = named("Error", {
  error: z.object({
    code: z.enum(ERROR_CODES),
    message: z.string(),
    param: MaybeText,
    type: z.string(),
    next_step: z
      .int()
      .optional()
      .describe("with `step_mismatch` the step to ask for, with `version_ahead` the one to acknowledge"),
    published: z.int().optional().describe("with `conflict` at a registration: reset_to goes back behind it"),
    epoch: z.int().optional().describe("with `epoch_fenced`: the one that goes on"),
    shortfall_micros: z
      .int()
      .optional()
      .describe("with `insufficient_balance` and `budget_exhausted`: how much is missing, in micro-dollars"),
    budget_id: z.string().optional().describe("with `budget_exhausted`: the budget that is used up"),
  }),
});
export type ApiError = z.infer<typeof ApiError>;
/** The fields of an error besides its message, for programs. */
export type ErrorDetails = Pick<
  ApiError["error"],
  "next_step" | "published" | "epoch" | "shortfall_micros" | "budget_id"
>;
