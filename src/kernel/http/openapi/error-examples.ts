/** When each code is answered, and one reply with it in the words the platform uses. */
import { type ApiError, type ErrorCode, STATUS_OF } from "../../../contract/api-error.ts";

interface ErrorExample {
  readonly when: string;
  readonly message: string;
  /** Absent where no field is at fault. */
  readonly param?: string;
}

const EXAMPLES: Readonly<Record<ErrorCode, ErrorExample>> = {
  invalid_request: {
    when: "a field is missing or wrong, or the body is no JSON; 405 where the path does not take the method, 408 for a body that comes too slowly, 415 for another content type",
    message: "limit: Too big: expected number to be <=100",
    param: "limit",
  },
  invalid_row: {
    when: "a dataset row its schema refuses",
    message: "line 17: question is required",
    param: "rows[16].question",
  },
  unknown_field: {
    when: "a field or a query parameter nobody reads",
    message: "verbose is not a known field",
    param: "verbose",
  },
  not_found: {
    when: "no such path or object; also what belongs to someone else",
    message: "no environment gsm8k@9",
    param: "environment",
  },
  unmet_need: {
    when: "the environment needs something this platform does not offer, or a secret that is not set",
    message: "research needs gpu, which this platform does not offer",
    param: "environment",
  },
  missing_judge: {
    when: "the environment's rubric asks a judge that the run does not name",
    message: 'essays needs the judge default: say who it is, {"endpoint": …, "model": …}',
    param: "judges.default",
  },
  idempotency_conflict: {
    when: "the Idempotency-Key was used with another body",
    message: "this Idempotency-Key was used with another body",
  },
  in_progress: {
    when: "the same thing is under way: ask again after `retry-after`",
    message: "the results are being folded: ask again",
  },
  insufficient_balance: {
    when: "the balance does not cover what the run reserves as it begins; `shortfall_micros` is missing",
    message: "the balance does not cover this run: $0.36 is missing",
  },
  budget_exhausted: {
    when: "a budget of this month does not cover what the run reserves as it begins; `shortfall_micros` is missing",
    message: "the budget of the project math for this month is used up: $0.36 is missing",
  },
  max_tokens_required: {
    when: "a run with `max_cost_micros` whose calls have no bound: `max_tokens` of the policy or of a judge is missing",
    message: "max_cost_micros needs sampling.max_tokens: without it nobody knows what a turn may cost",
    param: "sampling.max_tokens",
  },
  prices_required: {
    when: "a run with `max_cost_micros` whose endpoint says no prices",
    message: "max_cost_micros needs the prices of the endpoint qwen: PATCH /v1/endpoints/qwen",
    param: "endpoint",
  },
  rate_limited: { when: "too many requests: ask again after `retry-after`", message: "too many requests" },
  too_large: { when: "the body, a row, or the number of rollouts", message: "the body is over 1048576 bytes" },
  unauthorized: { when: "no key, or one nobody knows", message: "send your key as: Authorization: Bearer <key>" },
  forbidden: {
    when: "a trainer's token, for what is not its trainer's",
    message: "a trainer's token is for the trainer of its run: send an API key",
  },
  invalid_signature: {
    when: "a delivery whose signature does not fit",
    message: "the signature does not fit the body",
  },
  stale_timestamp: { when: "a delivery that is too old", message: "the timestamp is more than 300 s away" },
  epoch_fenced: {
    when: "another trainer has taken over",
    message: "epoch 1 is over: epoch 2 has begun",
    param: "epoch",
  },
  step_mismatch: {
    when: "a step that is not the next one",
    message: "the next step is 4",
    param: "want_step",
  },
  lease_lost: { when: "the lease has ended", message: "this lease has ended" },
  wrong_lease_token: {
    when: "a token that is not the lease's",
    message: "this is not the token of the lease",
    param: "token",
  },
  wrong_batch: {
    when: "a batch that is not the lease's",
    message: "the lease is on the batch of step 4",
    param: "batch_id",
  },
  version_ahead: {
    when: "weights of a batch that nobody has acknowledged",
    message: "acknowledge batch 4 first",
    param: "version",
  },
  batch_void: {
    when: "the run went back behind the batch, and has not cut that step anew",
    message: "the batch of step 42 is void: the run went back, and cuts that step anew",
    param: "step",
  },
  run_finished: {
    when: "the run has ended: nothing more is to be trained",
    message: "the run has ended: nothing more is to be trained",
  },
  url_not_allowed: {
    when: "an address this platform does not call: an endpoint's, a trainer's, or one the environment needs",
    message:
      "10.0.0.7 is not a public address: the platform calls it from its own network; a deployment whose endpoints are private sets ALLOW_PRIVATE_ENDPOINTS",
    param: "endpoint.base_url",
  },
  conflict: {
    when: "a name that is taken, an object in use, or one that is past what is asked of it",
    message: "there is an endpoint called qwen already",
    param: "name",
  },
  run_unreadable: {
    when: "the storage of the run's object was deleted or is damaged: what it held is lost",
    message:
      "the object of run_01m7yvracdx59b2v0pjmbx72k2 holds nothing: its storage was deleted, and with it the rollouts of this run",
    param: "id",
  },
  storage_full: {
    when: "the disk of a local platform is full: nothing is lost, and what runs goes on when there is room",
    message: "the disk of this platform is full: nothing is lost, and what runs goes on when there is room",
  },
  internal: {
    when: "something failed on our side: quote the `x-request-id`",
    message: "Something failed on our side. Quote the x-request-id of this reply.",
  },
};

export function whenAnswered(code: ErrorCode): string {
  return EXAMPLES[code].when;
}

/** The reply to a body of another type than the one an operation reads. */
export function wrongTypeExample(contentType: string): ApiError {
  return invalidRequest(`send the body as content-type: ${contentType}`);
}

export function slowBodyExample(): ApiError {
  return invalidRequest("the body brought fewer than 32768 bytes in 60 s: send it again");
}

function invalidRequest(message: string): ApiError {
  const [, type] = STATUS_OF.invalid_request;
  return { error: { code: "invalid_request", message, param: null, type } };
}

/** `missing`: what is not there, for an operation on one object. */
export function errorExample(code: ErrorCode, missing: string | null): ApiError {
  const { message, param = null } = EXAMPLES[code];
  const type = STATUS_OF[code][1];
  if (code !== "not_found" || missing === null) return { error: { code, message, param, type } };
  return { error: { code, message: `no ${missing}`, param: "id", type } };
}
