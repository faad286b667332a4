/**
 * What R2 holds of a run's trajectories, held to what the run says is there. An object's key is the hash of its content,
 * and R2 keeps the hash it was stored with: a list of keys shows what is missing and what is not what it was.
 */
import type { AuditViolation, RunAudit } from "../../contract/audit.ts";
import type { Scope } from "../../contract/scope.ts";
import type { RunRecords } from "../contract/run-records.ts";
import { batchKeys, sampleKey, segmentKey, trajectoryKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";

interface ObjectAudit {
  readonly counted: RunAudit["sources"]["r2"];
  readonly notes: string[];
  readonly violations: AuditViolation[];
}

export async function auditObjects(
  env: Env,
  scope: Scope,
  runId: string,
  { segments, large, training }: RunRecords,
  subrequests: Subrequests,
): Promise<ObjectAudit> {
  const folded = segments.filter(({ key }) => key !== null);
  const expected = new Set([
    ...folded.map(({ key }) => key ?? ""),
    ...large.map((digest) => trajectoryKey(scope, runId, digest)),
  ]);
  const there = new Map<string, R2Object>();
  for (const key of [segmentKey(scope, runId, ""), trajectoryKey(scope, runId, "")]) {
    const prefix = key.slice(0, key.lastIndexOf("/") + 1);
    for (const object of await listed(env, prefix, subrequests)) there.set(object.key, object);
  }
  const violations: AuditViolation[] = [];
  for (const key of expected) {
    const object = there.get(key);
    const hash = object === undefined ? null : await hashOf(env, object, subrequests);
    violations.push(...auditObject(key, hash));
  }
  violations.push(...(await auditBatches(env, scope, runId, training, subrequests)));
  const stray = [...there.keys()].filter((key) => !expected.has(key)).length;
  const kept = folded.filter(({ key }) => there.has(key ?? ""));
  return {
    counted: {
      segments: kept.length,
      rollouts: kept.reduce((sum, { first_seq, last_seq }) => sum + last_seq - first_seq + 1, 0),
      trajectories: large.filter((digest) => there.has(trajectoryKey(scope, runId, digest))).length,
    },
    notes: stray === 0 ? [] : [`${stray} objects of the run are in R2 that it needs no more`],
    violations,
  };
}

/** What a training run has shipped is there; trainers check the content by its digests. */
async function auditBatches(
  env: Env,
  scope: Scope,
  runId: string,
  training: RunRecords["training"],
  subrequests: Subrequests,
): Promise<AuditViolation[]> {
  if (training === null) return [];
  const { batches, samples } = training;
  const expected = [
    ...batches.flatMap((id) => Object.values(batchKeys(scope, runId, id))),
    ...samples.map((digest) => sampleKey(scope, runId, digest)),
  ];
  const there = new Set<string>();
  const anyBatch = batchKeys(scope, runId, "").manifest_key;
  const folders = [sampleKey(scope, runId, ""), anyBatch.slice(0, anyBatch.lastIndexOf("//") + 1)];
  for (const prefix of folders) {
    for (const { key } of await listed(env, prefix, subrequests)) there.add(key);
  }
  return expected.filter((key) => !there.has(key)).flatMap((key) => auditObject(key, null));
}

/** `hash`: of its content; null for an object that is not there. */
function auditObject(key: string, hash: string | null): AuditViolation[] {
  if (hash === null) return [{ rule: "r2_has_every_object", detail: `${key} is not there` }];
  if (key.includes(hash)) return [];
  return [{ rule: "r2_object_matches", detail: `${key} holds what hashes to ${hash}` }];
}

/** One that was stored without its hash is read. */
async function hashOf(env: Env, { key, checksums }: R2Object, subrequests: Subrequests): Promise<string | null> {
  const { sha256 } = checksums.toJSON();
  if (sha256 !== undefined) return sha256;
  return await subrequests.fetch(async () => {
    const object = await env.STORE.get(key);
    return object === null ? null : sha256Hex(await object.text());
  });
}

async function listed(env: Env, prefix: string, subrequests: Subrequests): Promise<R2Object[]> {
  const objects: R2Object[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await subrequests.fetch(() => env.STORE.list(cursor === undefined ? { prefix } : { prefix, cursor }));
    objects.push(...page.objects);
    if (!page.truncated) return objects;
    cursor = page.cursor;
  }
}
