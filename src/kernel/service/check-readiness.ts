/**
 * Checks whether this deployment has all that it needs to play a run: its secret, its variables, its database, its queues,
 * its bucket.
 */
import { databaseOf } from "../db/database.ts";
import { readSchemaLevel, SCHEMA_LEVEL } from "../db/schema-level.ts";
import { drainingSince } from "../kit/draining.ts";
import { logError } from "../kit/log.ts";
import { type SecretsEnv, secretsProblem } from "../kit/secrets.ts";
import { QUEUES } from "../messages/queues.ts";

/** `problem`: what is wrong, for anybody to read: it has no secret and no text of an error. Null if it is ok. */
export interface ReadinessCheck {
  readonly name: "secret" | "variables" | "database" | "queues" | "bucket";
  readonly problem: string | null;
}

export interface Readiness {
  readonly checks: readonly ReadinessCheck[];
  /** Epoch milliseconds; null if no drain is under way, or the bucket does not answer. */
  readonly drainingSince: number | null;
}

/** A store that has not answered by then counts as unavailable. */
const ANSWERS_WITHIN_MS = 5000;
/** Variables that bound what the Worker does. */
const NUMBERS = ["SILENCE_LIMIT_S", "MEMORY_BUDGET_MIB", "ROLLOUT_CHARACTERS"] as const;

/** Makes one round trip to each D1 database, all of them within `withinMs`, and one to R2 within that time. Never rejects. */
export async function checkReadiness(env: Env, withinMs: number = ANSWERS_WITHIN_MS): Promise<Readiness> {
  const [database, bucket] = await Promise.all([databaseProblem(env, withinMs), readBucket(env, withinMs)]);
  const checks: ReadinessCheck[] = [
    { name: "secret", problem: secretsProblem(env) },
    { name: "variables", problem: variablesProblem(env) },
    { name: "database", problem: database },
    { name: "queues", problem: queuesProblem(env) },
    { name: "bucket", problem: bucket.problem },
  ];
  return { checks, drainingSince: bucket.drainingSince };
}

/** A binding that wrangler.toml lacks is undefined, whatever its type says. */
type Bound = Partial<Omit<Env, keyof SecretsEnv>>;

/** An invalid value is replaced by the default of a deployment, which the operator should know. */
function variablesProblem(env: Bound): string | null {
  const wrong = NUMBERS.filter((name) => env[name] !== undefined && !(Number(env[name]) > 0));
  return wrong.length === 0 ? null : `not a number above 0: ${wrong.join(", ")}`;
}

/** The first problem of its D1 databases. */
async function databaseProblem(env: Bound, withinMs: number): Promise<string | null> {
  const { DB } = env;
  if (DB === undefined) return "DB is not bound";
  try {
    const levels = await inTime(databaseOf({ ...env, DB }).each(readSchemaLevel), withinMs);
    const behind = levels.findIndex((level) => level !== SCHEMA_LEVEL);
    if (behind === -1) return null;
    const its = behind === 0 ? "its" : "the";
    const where = behind === 0 ? "" : ` of DB_${behind}`;
    return `${its} newest migration${where} is ${levels[behind] ?? "none"}, but this release needs ${SCHEMA_LEVEL}`;
  } catch (thrown) {
    logError("readiness: the database does not answer", {}, thrown);
    return "D1 does not answer";
  }
}

async function readBucket(
  { STORE }: Bound,
  withinMs: number,
): Promise<{
  readonly problem: string | null;
  readonly drainingSince: number | null;
}> {
  if (STORE === undefined) return { problem: "STORE is not bound", drainingSince: null };
  try {
    return { problem: null, drainingSince: await inTime(drainingSince({ STORE }), withinMs) };
  } catch (thrown) {
    logError("readiness: the bucket does not answer", {}, thrown);
    return { problem: "R2 does not answer", drainingSince: null };
  }
}

function queuesProblem(env: Bound): string | null {
  const missing = QUEUES.map(({ binding }) => binding).filter((binding) => env[binding] === undefined);
  return missing.length === 0 ? null : `not bound: ${missing.join(", ")}`;
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
