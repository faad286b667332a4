/** Runs whose calls go through gatherers end as they do without, also if objects are killed at any step of a call. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { EXPORT_FORMATS } from "../../../src/contract/export.ts";
import type { ResultRow, RunView } from "../../../src/contract/run.ts";
import type { GatheredCall } from "../../../src/kernel/messages/gathered.ts";
import { GathererObject } from "../../../src/kernel/run/gatherer.ts";
import { RunObject } from "../../../src/kernel/run/object.ts";
import { WAIT } from "../../hang-limits.ts";
import { judgement, registerEssays } from "../essays.ts";
import { interposed } from "../hand-made.ts";
import { essayRun } from "../owing-scoring-group.ts";
import { expectLaw, isOf, keep, openPlatform, type RunOptions, requestsOf, type TestApi } from "../platform.ts";
import { down, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const { RUN } = env;
let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
  const request = { name: "bench", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", request)).status).toBe(201);
});
afterEach(() => {
  vi.restoreAllMocks();
  delete env.GATHERED_ABOVE;
  env.RUN = RUN;
});

const LONG = `${"long ".repeat(8000)}\\boxed{4}`;
const WORDS = ["wrong", "down", "long", "plain", "long", "wrong"];
const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };

/** Rewards of 0 and 1, rollouts that fail, and trajectories that a consumer scores. */
async function mixedRun(): Promise<RunOptions> {
  const when = { wrong: ["\\boxed{5}"], down: [{ fault: down }], long: [LONG] };
  return {
    ...{ environment: "gsm8k", dataset: questions(12, WORDS), rollouts_per_example: 3, max_concurrent: 12, seed: 7 },
    ...{
      model: await keep({ salt: crypto.randomUUID(), turns: RIGHT, when }),
      min_scored: 0,
      limits: { max_retries: 0 },
    },
  };
}

function judgedRun(): RunOptions {
  return essayRun(script([{ content: judgement("good"), usage }]), 10, {
    ...{ max_concurrent: 10, judge_cache: false },
  });
}

const CAPPED = {
  endpoint: {
    base_url: env.MODEL_URL,
    prices: { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 },
  },
  ...{ sampling: { max_tokens: 100 }, max_cost_micros: 1_000_000, min_scored: 0 },
};

function cappedRun(): RunOptions {
  return { ...CAPPED, environment: "gsm8k", dataset: questions(12), model: script(RIGHT), max_concurrent: 12 };
}

/** With gatherers, a run of `max_concurrent` 10 to 12 has five or six. */
async function played(request: RunOptions, above?: number): Promise<RunView> {
  if (above === undefined) delete env.GATHERED_ABOVE;
  else env.GATHERED_ABOVE = above;
  return await platform.finish(request);
}

/** Everything that a client can read of the run, without ids and times, and in an order that does not depend on them. */
async function figuresOf({ id, report, counts, status }: RunView) {
  const byPlace = (a: Pick<ResultRow, "group" | "slot">, b: typeof a) => a.group - b.group || a.slot - b.slot;
  const rows = (await platform.results(id)).toSorted(byPlace);
  const exports = await Promise.all(
    EXPORT_FORMATS.map(async (format) => {
      const reply = await platform.ask(`/v1/runs/${id}/export?format=${format}`);
      const lines = (await reply.text()).split("\n").filter((line) => line !== "");
      return { format, status: reply.status, lines: lines.map((line) => textOf(JSON.parse(line))).toSorted() };
    }),
  );
  return { report: textOf({ status, counts, report }), rows: rows.map(textOf), exports };
}

const TIMES = new Set(["timing", "duration", "latency", "created", "started_at", "ended_at"]);

function textOf(value: unknown): string {
  const text = JSON.stringify(value, (name, member) => (TIMES.has(name) ? null : member));
  return text.replaceAll(/\b(run|ro)_[\w-]+/g, "$1");
}

/** What arrives at the run's object while runs are played. */
function watched() {
  const seen: { readonly calls: readonly GatheredCall[]; readonly run: RunObject }[] = [];
  const { gathered } = RunObject.prototype;
  vi.spyOn(RunObject.prototype, "gathered").mockImplementation(async function (this: RunObject, calls) {
    seen.push({ calls, run: this });
    return await gathered.call(this, calls);
  });
  return (id: string) => seen.filter(({ run }) => isOf(id, run)).map(({ calls }) => calls);
}

test.for([
  ["a run with failures and large trajectories", mixedRun],
  ["a run with judges", judgedRun],
  ["a run with a cap", cappedRun],
] as const)("%s has the same report, rows and exports with gatherers as without", async ([, requestOf]) => {
  const request = await requestOf();
  const gatheredOf = watched();
  const without = await played(request);
  const withThem = await played(request, 4);
  expectLaw(withThem.counts);
  expect(gatheredOf(without.id)).toEqual([]);
  expect(gatheredOf(withThem.id).length).toBeGreaterThan(0);
  expect(await figuresOf(withThem)).toEqual(await figuresOf(without));
});

test("calls that arrive at about the same time are one request to the run's object", async () => {
  const gatheredOf = watched();
  const run = await played(await mixedRun(), 11);
  const calls = gatheredOf(run.id);
  const ends = calls.flat().flatMap((call) => (call.method === "answered" ? call.args[0] : []));
  expect(new Set(ends.map(({ rollout_id }) => rollout_id)).size).toBe(36);
  expect(new Set(calls.flat().map(({ method }) => method))).toEqual(
    new Set(["admit", "answered", "scoringGroupsToScore", "scored"]),
  );
  expect(calls.length).toBeLessThan(36);
});

test("a run below the limit has no gatherers, and one that is raised above it while it runs has them", async () => {
  const gatheredOf = watched();
  const below = await played({ ...(await mixedRun()), max_concurrent: 11 }, 11);
  expect(gatheredOf(below.id)).toEqual([]);
  const raised = await platform.start({ ...(await mixedRun()), max_concurrent: 2 });
  const reply = await platform.ask(`/v1/runs/${raised.id}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ max_concurrent: 12 }),
  });
  expect(reply.status).toBe(200);
  expect((await platform.ended(raised.id)).counts).toMatchObject({ scored: 33, failed: { provider: 3 } });
  expect(gatheredOf(raised.id).length).toBeGreaterThan(0);
});

interface Cut {
  readonly victims: readonly ("gatherer" | "run")[];
  /** Before the run's object takes the calls, after that, or once their effect is on disk. */
  readonly when: "before" | "after" | "stored";
}

const GONE = "the run is away: the process ends here";

/** Kills the objects at the first merged calls that hold reports or requests for money: `most` of each victim. */
function cutting({ victims, when }: Cut, most: number): () => number {
  const cuts = { gatherer: 0, run: 0 };
  const gatherers = new Map<string, DurableObjectState>();
  const takesCut = (victim: keyof typeof cuts, calls: readonly GatheredCall[]) => {
    const cut = victims.includes(victim) && cuts[victim] < most && calls.some(({ method }) => method !== "admit");
    if (cut) cuts[victim] += 1;
    return cut;
  };
  const { gather } = GathererObject.prototype;
  vi.spyOn(GathererObject.prototype, "gather").mockImplementation(async function (this: GathererObject, run, call) {
    // All rollouts of the run share one object, so all other calls go through one gatherer.
    if (call.method !== "admit") gatherers.set(run.run_id, Reflect.get(this, "ctx"));
    return await Reflect.apply(gather, this, [run, call]);
  });
  env.RUN = interposed(RUN, "gathered", async (call, name, [calls]) => {
    // It runs in the gatherer: an object cannot end another one.
    const cut = name.includes(platform.scope.projectId) && takesCut("gatherer", calls as readonly GatheredCall[]);
    const kill = () => gatherers.get(name.split("/").at(-1) ?? "")?.abort(GONE);
    if (cut && when === "before") kill();
    const replies = await call();
    if (cut && when !== "before") kill();
    return replies;
  });
  const { gathered } = RunObject.prototype;
  vi.spyOn(RunObject.prototype, "gathered").mockImplementation(async function (this: RunObject, calls) {
    const ctx: DurableObjectState = Reflect.get(this, "ctx");
    const cut = isOf(platform.scope.projectId, this) && takesCut("run", calls);
    if (cut && when === "before") ctx.abort(GONE);
    const replies = await gathered.call(this, calls);
    if (cut && when === "stored") await ctx.storage.sync();
    if (cut && when !== "before") ctx.abort(GONE);
    return replies;
  });
  return () => cuts.gatherer + cuts.run;
}

test.for<Cut>([
  { victims: ["gatherer"], when: "before" },
  { victims: ["gatherer"], when: "stored" },
  { victims: ["run"], when: "before" },
  { victims: ["run"], when: "after" },
  { victims: ["run"], when: "stored" },
  { victims: ["gatherer", "run"], when: "before" },
  { victims: ["gatherer", "run"], when: "after" },
  { victims: ["gatherer", "run"], when: "stored" },
])("if $victims are killed $when during a merged call, each rollout ends once and is counted once", async (cut) => {
  const cuts = cutting(cut, 3);
  const request = cappedRun();
  env.GATHERED_ABOVE = 4;
  const { id } = await platform.start(request);
  await vi.waitFor(async () => expect((await platform.run(id)).status).toBe("completed"), WAIT);
  const run = await platform.run(id);
  expect(cuts()).toBeGreaterThan(1);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 12, failed: {}, unscored: {}, cancelled: {} });
  const { prompt_tokens, completion_tokens } = run.report.usage;
  expect(run.report.counted_micros).toBe(prompt_tokens + 2 * completion_tokens);
  const ends = (await platform.events(run.id)).filter(({ event }) => event === "rollout.finished");
  expect(new Set(ends.map(({ data }) => data["rollout_id"])).size).toBe(12);
  expect(ends.length).toBe(12);
  expect((await requestsOf(String(request.model))).length).toBe(12);
  const audit = await (await platform.ask(`/v1/runs/${run.id}/audit`)).json<{ violations: object[] }>();
  expect(audit.violations).toEqual([]);
});
