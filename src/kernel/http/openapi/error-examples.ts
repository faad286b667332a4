/** When each error code is returned, and one example reply with the platform's own text. */
import { type ApiError, type ErrorCode, STATUS_OF } from "../../../contract/api-error.ts";

interface ErrorExample {
  readonly when: string;
  readonly message: string;
  /** Absent if no field is at fault. */
  readonly param?: string;
}

const EXAMPLES: Readonly<Record<ErrorCode, ErrorExample>> = {
  invalid_request: {
    when: "a field is missing or invalid, or the body is not JSON; 405 if the path does not allow the method, 408 if the body arrives too slowly, 415 for an unsupported content type",
    message: "limit: must be at most 100",
    param: "limit",
  },
  invalid_row: {
    when: "a dataset row does not match its schema",
    message: "line 17: question is required",
    param: "rows[16].question",
  },
  unknown_field: {
    when: "an unknown field or query parameter",
    message: "verbose is not a known field",
    param: "verbose",
  },
  not_found: {
    when: "no such path or object; also for objects of other organisations or projects",
    message: "no environment gsm8k@9",
    param: "environment",
  },
  unmet_need: {
    when: "the environment needs something this platform does not offer, or a secret that is not set",
    message: "research needs gpu, which this platform does not offer",
    param: "environment",
  },
  missing_judge: {
    when: "the environment's rubric needs a judge that the run does not set",
    message: 'essays needs the judge default: set {"endpoint": …, "model": …}',
    param: "judges.default",
  },
  idempotency_conflict: {
    when: "the Idempotency-Key was used with another body",
    message: "this Idempotency-Key was used with another body",
  },
  in_progress: {
    when: "the same work is in progress: try again after `retry-after`",
    message: "the results are being compacted: try again",
  },
  insufficient_balance: {
    when: "the balance does not cover what the run reserves at its start; `shortfall_micros` is missing",
    message: "the balance does not cover this run: $0.36 is missing",
  },
  budget_exhausted: {
    when: "a budget of this month does not cover what the run reserves at its start; `shortfall_micros` is missing",
    message: "the budget of the project math for this month is used up: $0.36 is missing",
  },
  max_tokens_required: {
    when: "a run with `max_cost_micros` whose calls have no limit: `max_tokens` of the policy or of a judge is missing",
    message: "max_cost_micros needs sampling.max_tokens: without it the cost of a turn is not limited",
    param: "sampling.max_tokens",
  },
  prices_required: {
    when: "a run with `max_cost_micros` whose endpoint has no prices",
    message: "max_cost_micros needs the prices of the endpoint qwen: PATCH /v1/endpoints/qwen",
    param: "endpoint",
  },
  rate_limited: { when: "too many requests: try again after `retry-after`", message: "too many requests" },
  too_large: { when: "the body, a row, or the number of rollouts", message: "the body is over 1048576 bytes" },
  unauthorized: { when: "the key is missing or unknown", message: "send your key as: Authorization: Bearer <key>" },
  forbidden: {
    when: "a trainer token was used for something else than its trainer's requests",
    message: "a trainer token is valid only for the trainer of its run: send an API key",
  },
  invalid_signature: {
    when: "the signature of the delivery does not match",
    message: "the signature does not match the body",
  },
  stale_timestamp: { when: "the delivery is too old", message: "the timestamp is more than 300 s away" },
  epoch_fenced: {
    when: "another trainer has taken over",
    message: "another trainer has registered: the epoch is now 2",
    param: "epoch",
  },
  step_mismatch: {
    when: "the step is not the next one",
    message: "the next step is 4",
    param: "want_step",
  },
  lease_lost: { when: "the lease has expired", message: "this lease has expired" },
  wrong_lease_token: {
    when: "the token is not that of the lease",
    message: "token: is not that of the current lease",
    param: "token",
  },
  wrong_batch: {
    when: "the batch is not that of the lease",
    message: "the lease is on the batch of step 4",
    param: "batch_id",
  },
  version_ahead: {
    when: "the weights come from a batch that is not acknowledged",
    message: "acknowledge batch 4 first",
    param: "version",
  },
  batch_void: {
    when: "the run was reset to before this batch, and has not built it again",
    message: "the batch of step 42 is void: the run was reset, and will build it again",
    param: "step",
  },
  run_finished: {
    when: "the run has ended: there is nothing left to train",
    message: "the run has ended: there is nothing left to train",
  },
  url_not_allowed: {
    when: "the platform may not call this address of an endpoint, of a trainer, or that the environment needs",
    message:
      "10.0.0.7 is not a public address, and the platform's own network is private; to allow private addresses, set ALLOW_PRIVATE_ENDPOINTS",
    param: "endpoint.base_url",
  },
  conflict: {
    when: "the name is taken, or the object is in use or in a state that does not allow the request",
    message: "an endpoint called qwen already exists",
    param: "name",
  },
  run_unreadable: {
    when: "the storage of the run's object was deleted or is damaged: its content is lost",
    message:
      "the object of run_01m7yvracdx59b2v0pjmbx72k2 is empty: its storage was deleted, with the rollouts of this run",
    param: "id",
  },
  storage_full: {
    when: "the disk of a local platform is full: nothing is lost, and runs continue once there is space",
    message: "the disk of this platform is full: nothing is lost, and runs continue once there is space",
  },
  unavailable: {
    when: "a part of the platform below did not answer, such as an object or the database: try again",
    message: "a part of the platform did not answer: nothing is known to be lost, try again",
  },
  internal: {
    when: "something failed on our side: quote the `x-request-id`",
    message: "Something failed on our side. Quote the x-request-id of this reply.",
  },
};

export function whenAnswered(code: ErrorCode): string {
  return EXAMPLES[code].when;
}

/** The reply to a body whose type is not the one that the operation reads. */
export function wrongTypeExample(contentType: string): ApiError {
  return invalidRequest(`send the body as content-type: ${contentType}`);
}

export function slowBodyExample(): ApiError {
  return invalidRequest("the body was too slow (under 32768 bytes in 60 s): send it again");
}

function invalidRequest(message: string): ApiError {
  const [, type] = STATUS_OF.invalid_request;
  return { error: { code: "invalid_request", message, param: null, type } };
}

/** `missing`: the thing that does not exist, for an operation on one object. */
export function errorExample(code: ErrorCode, missing: string | null): ApiError {
  const { message, param = null } = EXAMPLES[code];
  const type = STATUS_OF[code][1];
  if (code !== "not_found" || missing === null) return { error: { code, message, param, type } };
  return { error: { code, message: `no ${missing}`, param: "id", type } };
}
