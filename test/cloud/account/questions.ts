/**
 * The open questions about Cloudflare: how each is measured, what the platform assumes, and whether the measurement
 * agrees. A judgement is made of the raw numbers alone, which the report shows.
 */
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import { isPassing, isUnreadable, refusalOf } from "../../../src/kernel/kit/storage-faults.ts";
import { CloudflareFailed } from "../../../src/local/cloudflare/api.ts";
import { type Bench, ErrorSeen } from "./bench.ts";
import { PlayedRun, playRun } from "./play-run.ts";
import { costOfRun } from "./run-cost.ts";

/**
 * agrees: as the platform assumes. stricter: the platform assumes less than Cloudflare gives, so it is safe and could do
 * more. differs: the platform is wrong. undecided: this measurement does not tell.
 */
export type Verdict = "agrees" | "stricter" | "differs" | "undecided";

export interface Judgement {
  readonly verdict: Verdict;
  readonly says: string;
}

export interface Question {
  readonly id: string;
  readonly asks: string;
  readonly assumes: string;
  /** Raw numbers. */
  readonly measure: (bench: Bench) => Promise<unknown>;
  readonly judge: (raw: unknown, bench: Bench) => Judgement;
}

interface Asked<Raw> {
  readonly asks: string;
  readonly assumes: string;
  readonly raw: z.ZodType<Raw>;
  readonly measure: (bench: Bench) => Promise<unknown>;
  readonly judge: (raw: Raw, bench: Bench) => Judgement;
}

function question<Raw>(id: string, { raw: shape, judge, ...asked }: Asked<Raw>): Question {
  return { id, ...asked, judge: (raw, bench) => judge(shape.parse(raw), bench) };
}

const judgement = (verdict: Verdict, says: string): Judgement => ({ verdict, says });

const Timed = <T extends z.ZodType>(value: T) =>
  z.object({ ms: z.number(), value: value.nullable(), error: ErrorSeen.nullable() });
const Reply = Timed(z.object({ status: z.number(), bytes: z.number() }));
const Numbers = z.array(z.number());

export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** A deployment: nothing of a local platform is bound. */
const DEPLOYED = { LIVE_OBJECT_CEILING: 0 } as Env;

/** How the platform classifies an error with this text. */
export function classOf({ name, message, retryable, overloaded }: ErrorSeen): string {
  const error = Object.assign(new Error(message), {
    name,
    ...(retryable && { retryable }),
    ...(overloaded && { overloaded }),
  });
  if (refusalOf(error) !== null) return "refused value";
  if (isPassing(DEPLOYED, error)) return "passing fault";
  return isUnreadable(DEPLOYED, error) ? "damaged storage" : "other";
}

const replyText = ({ ms, value, error }: z.infer<typeof Reply>) =>
  `${value === null ? `the error "${error?.message}"` : `status ${value.status}`} after ${(ms / 1000).toFixed(1)} s`;

const SILENCE = question("silence", {
  asks: "Does Cloudflare's proxy end a subrequest whose server sends nothing, and after how long?",
  assumes: "A call may be silent for SILENCE_LIMIT_S (100 s); the proxy ends it with 524 after about 125 s.",
  raw: z.object({ short: Reply, long: Reply, peer_is_worker: z.boolean() }),
  measure: async ({ sizes, probe, peer }) => {
    const [short, long] = await Promise.all(
      sizes.silentS.map((seconds) => probe.play({ probe: "silence", origin: peer.origin, seconds }, seconds + 120)),
    );
    return { short, long, peer_is_worker: peer.isWorker };
  },
  judge: ({ short, long, peer_is_worker: worker }, { sizes }) => {
    const [shortS, longS] = sizes.silentS;
    const says = `${shortS} s of silence: ${replyText(short)}; ${longS} s: ${replyText(long)}.`;
    if (short.value?.status !== 200) return judgement("differs", says);
    if (long.value?.status !== 200) return judgement("agrees", says);
    if (worker) return judgement("undecided", `${says} The server was a Worker: repeat with --peer.`);
    return judgement("stricter", says);
  },
});

const STREAM = question("stream", {
  asks: "Does a stream that sends a byte every few seconds stay open for five minutes?",
  assumes: "A streamed call lasts as long as its server sends bytes.",
  raw: Reply,
  measure: ({ sizes: { streamS, streamEveryS }, probe, peer }) => {
    const job = { probe: "stream", origin: peer.origin, seconds: streamS, every_s: streamEveryS };
    return probe.play(job, streamS + 120);
  },
  judge: (raw, { sizes }) => {
    const whole = raw.value?.status === 200 && raw.ms >= sizes.streamS * 900;
    return judgement(
      whole ? "agrees" : "differs",
      `A stream of ${sizes.streamS} s: ${replyText(raw)}, ${raw.value?.bytes ?? 0} bytes.`,
    );
  },
});

const Seventh = z.object({
  ms: z.number(),
  error: ErrorSeen.nullable(),
  held_ms: z.number(),
  ended_before: z.number(),
  failed: z.number(),
});

function seventh(id: string, streamed: boolean): Question {
  const state = streamed ? "have their headers and stream" : "wait for their headers";
  return question(id, {
    asks: `Does a seventh call of one object start while six others ${state}?`,
    assumes: `A call takes one of ${LIMITS.parallelFetches} connections until its reply is read, and a seventh waits.`,
    raw: Seventh,
    measure: ({ sizes, probe, peer }) =>
      probe.play({ probe: "connections", origin: peer.origin, seconds: sizes.heldS, streamed }, sizes.heldS + 120),
    judge: ({ ms, error, held_ms, ended_before, failed }) => {
      const says = `The six were held for ${held_ms} ms. The seventh call took ${ms} ms, and ${ended_before} of the six had ended before it; ${failed} of them failed.`;
      if (error !== null) return judgement("differs", `${says} Its error: "${error.message}".`);
      if (failed > 0) return judgement("differs", says);
      return judgement(ended_before > 0 ? "agrees" : "stricter", says);
    },
  });
}

const ALARMS = question("alarms", {
  asks: "How late do alarms fire?",
  assumes: "An alarm that is 60 s late is lost, and is set again.",
  raw: z.object({ late_ms: z.array(z.number().nullable()) }),
  measure: ({ sizes, probe }) =>
    probe.play({ probe: "alarms", objects: sizes.alarms, after_ms: sizes.alarmAfterMs }, 300),
  judge: ({ late_ms }) => {
    const late = late_ms.filter((ms) => ms !== null);
    const lost = late_ms.length - late.length;
    const says = `${late.length} alarms: p50 ${quantile(late, 0.5)} ms late, p95 ${quantile(late, 0.95)} ms, at most ${quantile(late, 1)} ms; ${lost} did not fire within two minutes.`;
    return judgement(lost === 0 && quantile(late, 1) < 60_000 ? "agrees" : "differs", says);
  },
});

const FACET = question("facet", {
  asks: "Does a facet of a class from ctx.exports work, with a database of its own?",
  assumes: "The database of a rollout is a facet of the declared class RolloutSqlObject.",
  raw: z.object({ declared: z.boolean(), counts: Numbers, tables_in_host: z.number() }),
  measure: ({ probe }) => probe.play({ probe: "facet" }, 60),
  judge: ({ declared, counts, tables_in_host }) => {
    const says = `The class is ${declared ? "" : "not "}in ctx.exports; two calls counted ${counts.join(" and ")}; ${tables_in_host} of its tables are in the host's database.`;
    return judgement(declared && counts.join() === "1,2" && tables_in_host === 0 ? "agrees" : "differs", says);
  },
});

const SQL_RUN = question("sql-run", {
  asks: "Do rollouts with a database of their own end scored on the deployed platform?",
  assumes: "The environment tool-sql plays as it does on one machine.",
  raw: PlayedRun,
  measure: (bench) => playRun(bench, { environment: "tool-sql", rollouts: 4 }),
  judge: ({ status, scored, failed, seconds }) => {
    const says = `The run ended ${status} after ${seconds} s: ${scored} scored, failed ${JSON.stringify(failed)}.`;
    return judgement(status === "completed" && scored === 4 ? "agrees" : "differs", says);
  },
});

const BATCH = question("d1-atomic", {
  asks: "Are several statements in one query to D1 applied together or not at all?",
  assumes:
    "Both a query over Cloudflare's API, by which migrations are applied, and a batch of the binding are atomic.",
  raw: z.object({
    api: z.object({ error: z.string().nullable(), table_left: z.boolean() }),
    batch: z.object({ error: ErrorSeen.nullable(), rows_left: z.number() }),
  }),
  measure: async ({ account, names, probe }) => {
    const database = account.database(names.databaseId);
    const sql = "CREATE TABLE half (n INTEGER); INSERT INTO half VALUES (1); INSERT INTO nowhere VALUES (1);";
    const error = await refusedBy(() => database.query(sql));
    const api = { error: error?.message ?? null, table_left: await database.hasTable("half") };
    return { api, batch: await probe.play({ probe: "batch" }, 60) };
  },
  judge: ({ api, batch }) => {
    const says = `Over the API: ${api.error === null ? "no error" : `"${api.error}"`}, and the table ${api.table_left ? "was left" : "was not left"}. By the binding: "${batch.error?.message}", and ${batch.rows_left} rows were left.`;
    const atomic = api.error !== null && !api.table_left && batch.error !== null && batch.rows_left === 0;
    return judgement(atomic ? "agrees" : "differs", says);
  },
});

const QUEUE = question("queue", {
  asks: "How long does a message take from its sender to its consumer?",
  assumes: "A free slot stays empty for about 1 s, for the queue and its consumer (docs/cost.md).",
  raw: z.object({ sent: z.number(), took_ms: Numbers }),
  measure: ({ sizes, probe }) =>
    probe.play({ probe: "queue", messages: sizes.messages, limit_s: sizes.queueLimitS }, sizes.queueLimitS + 120),
  judge: ({ sent, took_ms }) => {
    const p50 = quantile(took_ms, 0.5);
    const says = `${took_ms.length} of ${sent} messages arrived: p50 ${p50} ms, p95 ${quantile(took_ms, 0.95)} ms, at most ${quantile(took_ms, 1)} ms.`;
    return judgement(took_ms.length >= sent && p50 <= 1500 ? "agrees" : "differs", says);
  },
});

const Multipart = z.object({ bytes: z.number(), stored: z.number().nullable(), error: ErrorSeen.nullable() });

const MULTIPART = question("multipart", {
  asks: "Does R2 store an upload of equal parts with a shorter last one, and refuse unequal parts?",
  assumes: "All parts but the last have the same size, as R2 requires.",
  raw: z.object({ equal: Multipart, unequal: Multipart }),
  measure: ({ sizes, probe }) => probe.play({ probe: "multipart", part_mib: sizes.partMib, parts: 2 }, 300),
  judge: ({ equal, unequal }) => {
    const says = `Equal parts: ${equal.stored} of ${equal.bytes} bytes stored. Unequal parts: ${unequal.error === null ? "stored" : `"${unequal.error.message}"`}.`;
    if (equal.stored !== equal.bytes) return judgement("differs", says);
    return judgement(unequal.error === null ? "stricter" : "agrees", says);
  },
});

const BODY = question("body", {
  asks: "How large may the body of a request be?",
  assumes: "100 MB on a zone of the Free or Pro plan; larger files need parts.",
  raw: z.array(z.object({ mb: z.number(), status: z.number(), text: z.string() })),
  measure: async ({ sizes, probe }) => {
    const sent = [];
    for (const mb of sizes.bodiesMb) {
      const reply = await probe.send("/sink", { method: "POST", body: new Uint8Array(mb * 1_000_000) });
      sent.push({ mb, status: reply.status, text: (await reply.text()).slice(0, 200) });
    }
    return sent;
  },
  judge: ([below, above]) => {
    const says = [below, above].map((body) => `${body?.mb} MB: status ${body?.status}`).join("; ");
    if (below?.status !== 200) return judgement("differs", says);
    return judgement(above?.status === 200 ? "stricter" : "agrees", says);
  },
});

const VALUE = question("rpc-value", {
  asks: "What does a call between objects say about a value over 32 MiB?",
  assumes: "The value is refused, and the text of the error is recognised: the call is not repeated.",
  raw: z.object({ below: Values(), above: Values() }),
  measure: async ({ sizes, probe }) => {
    const [below, above] = sizes.valuesMib;
    // One after the other: an isolate has 128 MB.
    return {
      below: await probe.play({ probe: "value", mib: below }, 120),
      above: await probe.play({ probe: "value", mib: above }, 120),
    };
  },
  judge: ({ below, above }) => {
    const errors = [above.argument, above.reply];
    const says = `${below.mib} MiB: ${below.argument === null && below.reply === null ? "passes" : `"${below.argument?.message ?? below.reply?.message}"`}. ${above.mib} MiB as an argument: "${above.argument?.message}"; as a reply: "${above.reply?.message}".`;
    const known = errors.every((error) => error !== null && classOf(error) === "refused value");
    return judgement(below.argument === null && below.reply === null && known ? "agrees" : "differs", says);
  },
});

function Values() {
  return z.object({ mib: z.number(), argument: ErrorSeen.nullable(), reply: ErrorSeen.nullable() });
}

const MEMORY = question("memory", {
  asks: "What does the caller of an object get when the object exceeds 128 MB?",
  assumes: "An error that is classified as a passing fault: the call is repeated.",
  raw: Timed(z.number()),
  measure: ({ sizes, probe }) => probe.play({ probe: "memory", mib: sizes.memoryMib }, 120),
  judge: ({ value, error }) => {
    if (error === null) return judgement("undecided", `The object held ${value} MiB and was not stopped.`);
    const kind = classOf(error);
    const says = `"${error.message}" (retryable ${error.retryable}, overloaded ${error.overloaded}) is a ${kind} to the platform.`;
    return judgement(kind === "passing fault" ? "agrees" : "differs", says);
  },
});

const OVERLOAD = question("d1-overload", {
  asks: "What does D1 say when too many slow queries arrive at once?",
  assumes: "Each such error is classified as a passing fault.",
  raw: z.array(ErrorSeen.nullable()),
  measure: ({ sizes, probe }) =>
    Promise.all(
      Array.from({ length: sizes.queries }, async () => {
        const reply = await probe.send(`/query?s=${sizes.queryS}`);
        return JSON.parse(await reply.text());
      }),
    ),
  judge: (errors) => {
    const seen = distinct(errors.filter((error) => error !== null));
    if (seen.length === 0) return judgement("undecided", `${errors.length} queries at once: no error.`);
    const says = seen.map((error) => `"${error.message}" is a ${classOf(error)}`).join("; ");
    return judgement(seen.every((error) => classOf(error) === "passing fault") ? "agrees" : "differs", says);
  },
});

const REDEPLOY = question("code-updated", {
  asks: "What does a caller get whose object is restarted because its code was updated?",
  assumes: "An error that is classified as a passing fault.",
  raw: ErrorSeen.nullable(),
  measure: async ({ sizes, probe, redeploy }) => {
    const held = probe.send(`/held?s=${sizes.redeployedS}`).then((reply) => reply.text());
    await redeploy();
    return JSON.parse(await held);
  },
  judge: (error) => {
    if (error === null) return judgement("undecided", "The call was not interrupted.");
    const kind = classOf(error);
    return judgement(
      kind === "passing fault" ? "agrees" : "differs",
      `"${error.message}" is a ${kind} to the platform.`,
    );
  },
});

const FAULTS = question("error-texts", {
  asks: "Which texts do errors have that a caller can provoke, and which of them are masked?",
  assumes: "A refused value is recognised by its text; `internal error; reference = …` is a passing fault.",
  raw: z.record(z.string(), ErrorSeen.nullable()),
  measure: ({ probe }) => probe.play({ probe: "faults" }, 120),
  judge: (errors) => {
    const says = Object.entries(errors)
      .map(([what, error]) => `${what}: ${error === null ? "no error" : `"${error.message}" (${classOf(error)})`}`)
      .join("; ");
    const row = errors["a row over 2 MB"] ?? null;
    if (row === null) return judgement("undecided", says);
    return judgement(classOf(row) === "refused value" ? "agrees" : "differs", says);
  },
});

const BUCKET = question("full-bucket", {
  asks: "Which code does the API refuse to delete a full bucket with?",
  assumes: "10008: `rollcall deploy destroy` then says that the bucket has objects.",
  raw: z.object({ status: z.number(), code: z.number(), message: z.string() }).nullable(),
  measure: async ({ api, account, names }) => {
    const call = `DELETE /accounts/${account.id}/r2/buckets/${names.bucket}`;
    const refused = await refusedBy(() => api.ask(call, z.unknown()));
    return refused === null ? null : { status: refused.status, code: refused.code, message: refused.message };
  },
  judge: (refused) => {
    if (refused === null) return judgement("differs", "The bucket was deleted with its objects.");
    return judgement(
      refused.code === 10008 ? "agrees" : "differs",
      `${refused.status}, code ${refused.code}: ${refused.message}`,
    );
  },
});

const COST = question("cost", {
  asks: "What does Cloudflare bill for a run: GB-s, requests and rows of objects?",
  assumes: `Up to ${LIMITS.rolloutsPerShard} rollouts share an object, whose time is billed once, at 0.128 GB.`,
  raw: z.object({
    run: PlayedRun,
    rollouts: z.number(),
    expected_gb_s: z.number(),
    billed: z
      .object({ gb_s: z.number(), requests: z.number(), rows_written: z.number(), rows_read: z.number() })
      .nullable(),
    dollars_per_1000: z.number().nullable(),
  }),
  measure: costOfRun,
  judge: ({ run, rollouts, expected_gb_s: expected, billed, dollars_per_1000: dollars }) => {
    const played = `${run.scored} of ${rollouts} rollouts scored in ${run.seconds} s`;
    if (billed === null || dollars === null)
      return judgement("undecided", `${played}; the analytics had no numbers in time.`);
    const says = `${played}: ${billed.gb_s.toFixed(1)} GB-s (expected at most ${expected.toFixed(1)}), ${billed.requests} requests, ${billed.rows_written} rows written: $${dollars.toFixed(4)} for 1,000 such rollouts.`;
    return judgement(run.scored === rollouts && billed.gb_s <= expected ? "agrees" : "differs", says);
  },
});

/** Asked while the deployment is deleted. */
export const FORCED_DELETE: Question = question("forced-delete", {
  asks: "Is a Worker that consumes a queue deleted by force=true, and the queue after it?",
  assumes: "`rollcall deploy destroy` deletes the Worker first, then its queues.",
  raw: z.object({ worker: z.string().nullable(), queue: z.string().nullable() }),
  measure: () => Promise.reject(new Error("measured by the deletion itself")),
  judge: ({ worker, queue }) => {
    const said = (what: string, error: string | null) => `${what}: ${error === null ? "deleted" : error}`;
    const says = [said("the Worker", worker), said("its queue", queue)].join("; ");
    return judgement(worker === null && queue === null ? "agrees" : "differs", says);
  },
});

/**
 * In waves: those of a wave are measured at once. What loads the database, restarts objects or fills memory comes after
 * what measures times.
 */
export const WAVES: readonly (readonly Question[])[] = [
  [SILENCE, STREAM, seventh("seventh-streaming", true), seventh("seventh-waiting", false), QUEUE, FACET, BATCH],
  [ALARMS],
  [COST],
  [SQL_RUN, BODY, FAULTS, BUCKET],
  [MULTIPART],
  [VALUE],
  [OVERLOAD],
  [REDEPLOY],
  [MEMORY],
];

function distinct(errors: readonly ErrorSeen[]): ErrorSeen[] {
  // References of masked errors differ.
  return [...new Map(errors.map((error) => [error.message.replace(/reference = \w+/, ""), error])).values()];
}

/** How Cloudflare refused a call; null if it did not. */
async function refusedBy(call: () => Promise<unknown>): Promise<CloudflareFailed | null> {
  try {
    await call();
    return null;
  } catch (thrown) {
    if (thrown instanceof CloudflareFailed) return thrown;
    throw thrown;
  }
}
