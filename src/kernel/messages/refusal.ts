/** Failures as values, as they cross an object's boundary and reach the API: a code, a sentence, the field at fault. */
import type { ErrorCode, ErrorDetails } from "../../contract/api-error.ts";
import type { Caller } from "../../contract/identity.ts";

export type Refusal = {
  code: ErrorCode;
  message: string;
  param: string | null;
  details?: ErrorDetails;
};
export type Result<T> = { ok: true; value: T } | { ok: false; error: Refusal };

export function refuse(code: ErrorCode, message: string, param: string | null): Result<never> {
  return { ok: false, error: { code, message, param } };
}

/** What was to be made in a project that goes. */
export function projectGone(): Result<never> {
  return refuse("not_found", "the project is being deleted", null);
}

/** A key of one project changes nothing that is of others too. */
export function refuseOneProject({ projectId }: Pick<Caller, "projectId">): Result<never> | null {
  if (projectId === null) return null;
  return refuse("forbidden", "this key is for one project: this change needs a key of the whole organisation", null);
}

/** The same Idempotency-Key with another body. */
export function keyReused(): Result<never> {
  return refuse("idempotency_conflict", "this Idempotency-Key was used with another body", null);
}

/** To whoever was let in a moment ago and may do this no more. */
export const LOST_RIGHT = "you no longer have permission: your role or key was changed meanwhile";
