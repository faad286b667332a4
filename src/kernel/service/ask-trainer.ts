/**
 * Calls a trainer's object for a route, and turns its refusals into messages. The object is found by the run's id
 * alone, which cannot be guessed. If accepting the run was interrupted before the object was created, it is created
 * here from the run's row.
 */
import type { Scope } from "../../contract/scope.ts";
import type { WeightVersions } from "../../contract/trainer-wire.ts";
import type { TrainerSecrets } from "../../contract/training-view.ts";
import { trainerObject } from "../kit/names.ts";
import { readId } from "../kit/secrets.ts";
import { type Refusal, type Result, refuse } from "../messages/refusal.ts";
import { type Answer, type TrainerRefusal, type TrainerRpc, trainerSpecOf } from "../messages/training-wire.ts";
import { issueToken } from "./issue-token.ts";
import { notFound, openRun } from "./read-run.ts";

/** `ask` may be called twice. */
export async function askTrainer<T>(
  env: Env,
  scope: Scope,
  runId: string,
  ask: (trainer: TrainerRpc) => Promise<Answer<T>>,
): Promise<Result<T>> {
  if (readId(env, runId)?.kind !== "run") return notFound("run", runId);
  const trainer = trainerObject(env, scope, runId);
  const first = await ask(trainer);
  if (first.ok || first.refusal.code !== "unknown") return inWords(first, runId);
  const found = await openRun(env, scope, runId);
  if (!found.ok) return found;
  const spec = trainerSpecOf(found.value.record.run.spec);
  if (spec === null) return refuse("not_found", `${runId} is not a training run`, "id");
  await trainer.create(spec);
  return inWords(await ask(trainer), runId);
}

export async function readWeightVersions(env: Env, scope: Scope, runId: string): Promise<Result<WeightVersions>> {
  return await askTrainer(env, scope, runId, async (trainer) => {
    const value = await trainer.weightVersions();
    return value === null ? { ok: false, refusal: { code: "unknown" } } : { ok: true, value };
  });
}

function inWords<T>(answer: Answer<T>, runId: string): Result<T> {
  return answer.ok ? answer : { ok: false, error: wordsOf(answer.refusal, runId) };
}

function wordsOf(refusal: TrainerRefusal, runId: string): Refusal {
  switch (refusal.code) {
    case "unknown":
      return { code: "not_found", message: `no run ${runId}`, param: "id" };
    case "epoch_fenced": {
      const { epoch } = refusal;
      const message = `another trainer has registered: the epoch is now ${epoch}`;
      return { code: "epoch_fenced", message, param: "epoch", details: { epoch } };
    }
    case "step_mismatch": {
      const { next_step } = refusal;
      const message = `the next step is ${next_step}`;
      return { code: "step_mismatch", message, param: "want_step", details: { next_step } };
    }
    case "lease_lost": {
      const message =
        "this lease has expired: lease again, or register with last_acked if the batch is in your checkpoint";
      return { code: "lease_lost", message, param: null };
    }
    case "wrong_token": {
      const message = "token: is not that of the current lease: send the token of the reply that gave you the lease";
      return { code: "wrong_lease_token", message, param: "token" };
    }
    case "wrong_batch":
      return { code: "wrong_batch", message: refusal.message, param: "batch_id" };
    case "version_ahead": {
      const { message, next_step } = refusal;
      return { code: "version_ahead", message, param: "version", details: { next_step } };
    }
    case "lease_held":
      return { code: "conflict", message: refusal.message, param: null };
    case "needs_reset": {
      const { published } = refusal;
      const message = `version ${published} is published: to go back to an earlier one, set reset_to`;
      return { code: "conflict", message, param: "version", details: { published } };
    }
    case "run_finished":
      return {
        code: "run_finished",
        message: "the run has ended: there is nothing left to train",
        param: null,
      };
    case "conflict":
      return { code: "conflict", message: refusal.message, param: refusal.param ?? null };
  }
}

/** Replaces the token of a run's trainer. */

/**
 * For a client that lost the run's token. The previous token works for `overlapMs` more. The secret that signs offers
 * does not change and is not shown again.
 */
export async function rotateTrainerToken(
  env: Env,
  scope: Scope,
  id: string,
  now: number,
  overlapMs: number,
): Promise<Result<TrainerSecrets>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  if (found.value.record.run.kind !== "training") {
    return refuse("not_found", `${id} is not a training run`, "id");
  }
  return { ok: true, value: { token: await issueToken(env, scope, id, now, now + overlapMs), push_secret: null } };
}
