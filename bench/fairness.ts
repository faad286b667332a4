/**
 * `npm run bench:fairness`: measures how long a small run of one organisation takes, alone and next to another
 * organisation's load. The loads, one after another: 100,000 rollouts that wait for a slow model, and others whose
 * judge never answers; hundreds of rollouts with slow graders; hundreds with a judge that takes 9 s. The small run has
 * no judge, a healthy one, or graders that take a tenth of a second. Meanwhile its organisation reads its list of runs
 * repeatedly. Both organisations are on one local platform, and everything goes over HTTP. With --json, prints one
 * object to stdout. Exits with 1 if the run takes more than two and a half times as long as alone, or the 99th
 * percentile of the reads more than ten times as long.
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { bootPlatform, type Platform } from "../src/local/platform.ts";
import { apiKeyOf } from "../src/local/state-directory.ts";
import { RollcallClient, type RunRequestInput } from "../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../test/fakes/scripted-model.ts";
import { describeMachine, describeVersions } from "./machine.ts";

const HELP = `Usage: npm run bench:fairness -- [flags]

      --rollouts N      of the small run; default 100
      --waiting N       rollouts of the other organisation; default 100000
      --times N         how often each small run is made; the median counts; default 3
      --beside NAMES    waiting, graders, judge: some of them, with commas; default all
      --json            print {machine, versions, rows}
`;

/** The latencies of the small run's model and judge, and of the other organisation's. */
const LATENCY_MS = { model: 500, judge: 500, slow: 120_000, slowJudge: 9000 };
const AT_ONCE = { small: 100, large: 1000 };
/** Rollouts whose judge hangs, or is slow. */
const JUDGED = 300;
/** How long the judge has not answered before the small run starts. */
const UNDER_WAY_MS = 20_000;
/**
 * The other organisation: rollouts with heavy graders, how many graders each has, and the length of the texts they
 * compare.
 */
const GRADED = { rollouts: 480, fuzzy: 8, levenshtein: 4, characters: 14_000 } as const;
/** The small run: a tenth as many rollouts, and how many graders each has. */
const SMALL_GRADED = { share: 0.1, levenshtein: 3 } as const;
const MOST_TIMES_AS_LONG = 2.5;
const READ_MOST_TIMES_AS_LONG = 10;
const READ_EVERY_MS = 50;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface Models {
  readonly quick: ScriptedModel;
  readonly judge: ScriptedModel;
  readonly slow: ScriptedModel;
  readonly hanging: ScriptedModel;
  readonly wordy: ScriptedModel;
  readonly slowJudge: ScriptedModel;
}

async function startModels(): Promise<Models> {
  const verdict = `It says so.\n${JSON.stringify({ reason: "it names it", verdict: "right" })}`;
  return {
    quick: await startScriptedModel({ reply: () => "\\boxed{4}", latencyMs: LATENCY_MS.model }),
    judge: await startScriptedModel({ reply: () => verdict, latencyMs: LATENCY_MS.judge }),
    slow: await startScriptedModel({
      reply: async () => {
        await pause(LATENCY_MS.slow * (0.5 + Math.random()));
        return "The answer is 48.";
      },
    }),
    slowJudge: await startScriptedModel({ reply: () => verdict, latencyMs: LATENCY_MS.slowJudge }),
    wordy: await startScriptedModel({ reply: () => "x".repeat(GRADED.characters) }),
    hanging: await startScriptedModel({ reply: () => ({ fault: { kind: "hang" } }) }),
  };
}

function rowsOf(count: number) {
  return Array.from({ length: count }, (_, index) => ({ question: `question ${index}`, answer: "so it is #### 4" }));
}

/**
 * A platform with two organisations, and the key of the second one. That organisation is written while no process has
 * the database open.
 */
async function bootShared(directory: string): Promise<{ platform: Platform; other: string }> {
  const options = { directory, store: "disk", log: (line: string) => process.stderr.write(`${line}\n`) } as const;
  await (await bootPlatform(options)).stop();
  const beside = join(directory, "other");
  mkdirSync(beside);
  copyFileSync(join(directory, "secret"), join(beside, "secret"));
  const other = apiKeyOf(beside);
  const file = readdirSync(join(directory, "store/d1"), { recursive: true, encoding: "utf8" }).find((name) =>
    /[0-9a-f]{64}[.]sqlite$/.test(name),
  );
  if (file === undefined) throw new Error("the platform has left no database");
  addOrganization(join(directory, "store/d1", file), other);
  return { platform: await bootPlatform(options), other };
}

function addOrganization(file: string, key: string): void {
  const database = new DatabaseSync(file);
  const now = Date.now();
  const hash = createHash("sha256").update(key).digest("hex");
  const add = (sql: string, ...values: (string | number)[]) => database.prepare(`insert into ${sql}`).run(...values);
  add("organizations (id, name, limits, created_at) values ('org_other', 'other', '{}', ?)", now);
  add("projects (id, org_id, name, retention, created_at) values ('pj_other', 'org_other', 'default', '{}', ?)", now);
  add(
    `api_keys (id, org_id, project_id, name, hash, prefix, last4, scopes, created_by, created_at)
      values ('key_other', 'org_other', 'pj_other', 'other', ?, ?, ?, '["admin"]', 'bootstrap', ?)`,
    hash,
    key.slice(0, 7),
    key.slice(-4),
    now,
  );
  database.close();
}

/** From the POST to the end as the client sees it, in seconds. */
async function play(client: RollcallClient, request: RunRequestInput): Promise<number> {
  const started = performance.now();
  const { id } = await client.runs.create(request);
  for await (const _event of client.runs.events(id));
  const seconds = (performance.now() - started) / 1000;
  const { counts } = await client.runs.get(id);
  if (counts.scored !== counts.planned) throw new Error(`${id} has scored ${counts.scored} of ${counts.planned}`);
  return seconds;
}

/** The result of `work`, and how many milliseconds each concurrent read took. */
async function whileReading<T>(client: RollcallClient, work: () => Promise<T>): Promise<{ made: T; reads: number[] }> {
  const reads: number[] = [];
  let over = false;
  const reading = (async () => {
    while (!over) {
      const started = performance.now();
      await client.runs.list({ limit: 5 });
      reads.push(performance.now() - started);
      await pause(READ_EVERY_MS);
    }
  })();
  try {
    return { made: await work(), reads };
  } finally {
    over = true;
    await reading;
  }
}

const KINDS = ["without judges", "with a judge", "with graders"] as const;
type Kind = (typeof KINDS)[number];
const NEIGHBOURS = ["waiting", "graders", "judge"] as const;
type Neighbour = (typeof NEIGHBOURS)[number];

/** A reference repeats a row's answer this many times: sent in full, the rows would be too much for one request. */
const ANSWERS = 100;

function gradedRows(rollouts: number) {
  const answer = "y".repeat(GRADED.characters / ANSWERS);
  return Array.from({ length: rollouts }, (_, index) => ({ question: `question ${index}`, answer }));
}

function gradersOf({ levenshtein, fuzzy = 0 }: { levenshtein: number; fuzzy?: number }) {
  const named = (count: number, grader: object, name: string) =>
    Array.from({ length: count }, (_, at) => ({ ...grader, name: `${name}${at}` }));
  const texts = { input: "{{sample.output_text}}", reference: "{{item.answer}}".repeat(ANSWERS) };
  return [
    ...named(levenshtein, { type: "scorer", scorer: "levenshtein", ...texts }, "distance"),
    ...named(fuzzy, { type: "text_similarity", evaluation_metric: "fuzzy_match", ...texts }, "fuzzy"),
  ];
}

function smallRun(kind: Kind, { quick, judge, wordy }: Models, rollouts: number): RunRequestInput {
  if (kind === "with graders") {
    return {
      ...{ environment: "graded-dataset", environment_args: { graders: gradersOf(SMALL_GRADED) } },
      dataset: gradedRows(Math.ceil(rollouts * SMALL_GRADED.share)),
      ...{ model: "wordy", endpoint: { base_url: wordy.url }, max_concurrent: AT_ONCE.small },
    };
  }
  const common = {
    ...{ model: "quick", endpoint: { base_url: quick.url }, max_concurrent: AT_ONCE.small },
    dataset: rowsOf(rollouts),
  };
  if (kind === "without judges") return { ...common, environment: "gsm8k" };
  const judges = { default: { model: "judge", endpoint: { base_url: judge.url } } };
  return { ...common, environment: "judged-qa", judges, judge_cache: false };
}

/** Starts the other organisation's load. */
async function startLarge(
  client: RollcallClient,
  { slow, quick, hanging }: Models,
  waiting: number,
): Promise<string[]> {
  const large = await client.runs.create({
    ...{ environment: "calculator", model: "slow", endpoint: { base_url: slow.url } },
    ...{ num_examples: waiting, max_concurrent: AT_ONCE.large },
  });
  return [large.id, await startJudged(client, quick, hanging)];
}

async function startJudged(client: RollcallClient, quick: ScriptedModel, judge: ScriptedModel): Promise<string> {
  const { id } = await client.runs.create({
    ...{ environment: "judged-qa", model: "quick", endpoint: { base_url: quick.url } },
    judges: { default: { model: "judge", endpoint: { base_url: judge.url } } },
    ...{ dataset: rowsOf(JUDGED), max_concurrent: AT_ONCE.small, judge_cache: false },
  });
  // From here on it only waits for its judge.
  while ((await client.runs.get(id)).counts.pending > 0) await pause(1000);
  await pause(UNDER_WAY_MS);
  return id;
}

/** The same with heavy graders. */
async function startGraded(client: RollcallClient, { wordy }: Models): Promise<string[]> {
  const { id } = await client.runs.create({
    ...{ environment: "graded-dataset", environment_args: { graders: gradersOf(GRADED) } },
    dataset: gradedRows(GRADED.rollouts),
    ...{ model: "wordy", endpoint: { base_url: wordy.url }, max_concurrent: AT_ONCE.large },
  });
  while ((await client.runs.get(id)).counts.scored === 0) await pause(100);
  return [id];
}

interface Row {
  readonly run: Kind;
  readonly beside: Neighbour;
  readonly alone_s: number;
  readonly beside_s: number;
  readonly times: number;
  /** The 99th percentile. */
  readonly read_ms: { readonly alone: number; readonly beside: number; readonly times: number };
  readonly all: { readonly alone: readonly number[]; readonly beside: readonly number[] };
}

const rounded = (value: number) => Math.round(value * 100) / 100;

function quantileOf(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

interface Measured {
  readonly made: readonly number[];
  readonly reads: readonly number[];
}

function rowOf(run: Kind, neighbour: Neighbour, alone: Measured, beside: Measured): Row {
  const [alone_s, beside_s] = [quantileOf(alone.made, 0.5), quantileOf(beside.made, 0.5)];
  const [read, readBeside] = [quantileOf(alone.reads, 0.99), quantileOf(beside.reads, 0.99)];
  return {
    run,
    beside: neighbour,
    alone_s: rounded(alone_s),
    beside_s: rounded(beside_s),
    times: rounded(beside_s / alone_s),
    read_ms: { alone: rounded(read), beside: rounded(readBeside), times: rounded(readBeside / read) },
    all: { alone: alone.made.map(rounded), beside: beside.made.map(rounded) },
  };
}

interface Settings {
  readonly rollouts: number;
  readonly waiting: number;
  readonly times: number;
  readonly beside: readonly Neighbour[];
}

async function measure(settings: Settings): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), "rollcall-fairness-"));
  const models = await startModels();
  const { platform, other } = await bootShared(directory);
  try {
    const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
    const neighbour = new RollcallClient({ baseUrl: platform.url, apiKey: other });
    const series = async (kind: Kind) => {
      const seconds: number[] = [];
      for (let time = 0; time < settings.times; time += 1) {
        seconds.push(await play(client, smallRun(kind, models, settings.rollouts)));
      }
      return seconds;
    };
    // Run once first, because of work that a process does only once.
    await play(client, smallRun("with a judge", models, settings.rollouts));
    const measured = (kind: Kind) => whileReading(client, () => series(kind));
    const alone = new Map<Kind, Awaited<ReturnType<typeof measured>>>();
    for (const kind of KINDS) alone.set(kind, await measured(kind));
    const rows: Row[] = [];
    for (const beside of settings.beside) {
      const start = {
        waiting: () => startLarge(neighbour, models, settings.waiting),
        graders: () => startGraded(neighbour, models),
        judge: async () => [await startJudged(neighbour, models.quick, models.slowJudge)],
      };
      const ids = await start[beside]();
      for (const run of KINDS) {
        const before = alone.get(run) ?? { made: [], reads: [] };
        rows.push(rowOf(run, beside, before, await measured(run)));
      }
      for (const id of ids) {
        const { counts, status_reason } = await neighbour.runs.get(id);
        process.stderr.write(`${id}: ${JSON.stringify({ counts, status_reason })}\n`);
        await neighbour.runs.cancel(id);
      }
    }
    process.stderr.write(`judge that hangs: ${models.hanging.requests.length} calls\n`);
    return rows;
  } finally {
    await platform.stop();
    for (const model of Object.values(models)) await model.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "100" },
    waiting: { type: "string", default: "100000" },
    times: { type: "string", default: "3" },
    beside: { type: "string", default: NEIGHBOURS.join() },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  const { rollouts, waiting, times } = values;
  const beside = NEIGHBOURS.filter((name) => values.beside.split(",").includes(name));
  const rows = await measure({ rollouts: Number(rollouts), waiting: Number(waiting), times: Number(times), beside });
  if (values.json) {
    const measured = { machine: describeMachine(), versions: describeVersions(), rows };
    process.stdout.write(`${JSON.stringify(measured, null, 2)}\n`);
  } else {
    for (const { run, beside: neighbour, alone_s, beside_s, times: longer, read_ms } of rows) {
      process.stdout.write(`${run}: alone ${alone_s} s, beside ${neighbour} ${beside_s} s (${longer} times)\n`);
      const { alone, beside, times: slower } = read_ms;
      process.stdout.write(
        `  99 of 100 reads: alone within ${alone} ms, beside the other ${beside} ms (${slower} times)\n`,
      );
    }
  }
  const tooLong = (row: Row) => row.times > MOST_TIMES_AS_LONG || row.read_ms.times > READ_MOST_TIMES_AS_LONG;
  process.exitCode = rows.some(tooLong) ? 1 : 0;
}
