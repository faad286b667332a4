/**
 * Failures as values, as they cross an object's boundary and reach the API: a code, a sentence, and the wrong field.
 */
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

/** For creating something in a project that is being deleted. */
export function projectGone(): Result<never> {
  return refuse("not_found", "the project is being deleted", null);
}

/** Refuses a change that affects several projects, if the key is for one project. */
export function refuseOneProject({ projectId }: Pick<Caller, "projectId">): Result<never> | null {
  if (projectId === null) return null;
  return refuse("forbidden", "this key is for one project: this change needs a key of the whole organisation", null);
}

/** The same Idempotency-Key was sent with another body. */
export function keyReused(): Result<never> {
  return refuse("idempotency_conflict", "this Idempotency-Key was used with another body", null);
}

/** For a caller whose permission was removed after the request was accepted. */
export const LOST_RIGHT = "you no longer have permission: your role or key was changed meanwhile";
