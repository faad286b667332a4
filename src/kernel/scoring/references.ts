/**
 * Adds the reference logprobs to the rows of a group's rollouts, and stores those that came.
 *
 * Invariants. They are stored in R2 before the run records that they came, so a recorded answer can be read. A rollout
 * with a row that has none gives no rows, with the cause `no_ref_logprobs`; it keeps its score.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import { referenceAsk, referenceName, withReference } from "../../core/training/reference.ts";
import type { SampleRow } from "../../core/training/sample-row.ts";
import { referenceKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";

export const NO_REFERENCE = "no_ref_logprobs";

/** What a run knows about its reference's answers, by the keys of their asks. */
export type ReferenceResults = ReadonlyMap<string, JudgeResult>;

export interface Referenced<Member> {
  /** In the order of the members, each with the rows it has now. */
  readonly members: readonly (Member & { readonly rows: readonly SampleRow[] })[];
  /** Members that have no rows now because the reference gave no logprobs. */
  readonly without: number;
  /** What must be requested first: then nothing else is valid. */
  readonly pending: readonly JudgeAsk[];
}

/** Stores the logprobs that came for an ask. */
export async function storeReference(
  env: Env,
  { scope, run_id }: RunSpec,
  ask: JudgeAsk,
  logprobs: readonly number[],
  subrequests: Subrequests,
): Promise<void> {
  const key = referenceKey(scope, run_id, referenceName(ask.key));
  await subrequests.inTurn(() => env.STORE.put(key, Float32Array.from(logprobs)));
}

/** `members`: those that are trained on. In a run without a reference they are unchanged. */
export async function addReferences<Member extends { readonly rows: readonly SampleRow[] }>(
  env: Env,
  spec: RunSpec,
  members: readonly Member[],
  results: ReferenceResults,
  subrequests: Subrequests,
): Promise<Referenced<Member>> {
  const reference = spec.training?.reference;
  if (reference === undefined) return { members, without: 0, pending: [] };
  const askable = members.flatMap((member) => member.rows).filter(isAsked);
  const rows = new Set(askable.slice(0, LIMITS.referenceRows));
  const asks = Array.from(rows, (row) => referenceAsk(row, sha256Hex));
  const open = asks.filter(({ key }) => !results.has(key));
  const pending = [...new Map(open.map((ask) => [ask.key, ask])).values()];
  if (pending.length > 0) return { members, without: 0, pending };
  const added: (Member & { readonly rows: readonly SampleRow[] })[] = [];
  let without = 0;
  for (const member of members) {
    const read: SampleRow[] = [];
    for (const row of member.rows) {
      const logprobs = rows.has(row) ? await logprobsOf(env, spec, row, results, subrequests) : null;
      if (logprobs !== null) read.push(withReference(row, logprobs, reference.kl_weight));
    }
    const whole = read.length === member.rows.length;
    if (!whole) without += 1;
    added.push({ ...member, rows: whole ? read : [] });
  }
  return { members: added, without, pending: [] };
}

/** The reply for a longer row would be too large. */
function isAsked({ token_ids }: SampleRow): boolean {
  return token_ids.length <= LIMITS.referenceTokens;
}

/** Null if the reference gave none. */
async function logprobsOf(
  env: Env,
  { scope, run_id }: RunSpec,
  row: SampleRow,
  results: ReferenceResults,
  subrequests: Subrequests,
): Promise<Float32Array<ArrayBuffer> | null> {
  const { key } = referenceAsk(row, sha256Hex);
  if ((results.get(key)?.value ?? null) === null) return null;
  const stored = await subrequests.inTurn(() => env.STORE.get(referenceKey(scope, run_id, referenceName(key))));
  if (stored === null) return null;
  const logprobs = new Float32Array(await stored.arrayBuffer());
  return logprobs.length === row.token_ids.length ? logprobs : null;
}
