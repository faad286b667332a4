/**
 * A gradual upgrade from release 0.2.0: while runs are played, the objects and the consumers of the queues change between
 * both versions of the code, back and forth, each time with a kill. D1 has the new schema from the beginning.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { textOf } from "../../src/contract/messages.ts";
import type { RollcallClient, RunRequestInput } from "../../src/sdk/client.ts";
import type { ReplyParts } from "../fakes/completion-body.ts";
import { type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import { WAIT } from "../hang-limits.ts";
import { LivePlatform, type Mix } from "./live-platform.ts";
import { bundleNew, bundleOld, findOldCommit, MISSING, type Release } from "./releases.ts";

const commit = findOldCommit();

let [before, after]: [Release | null, Release | null] = [null, null];
const folder = mkdtempSync(join(tmpdir(), "rollcall-release-"));

beforeAll(async () => {
  if (commit === null) return;
  [before, after] = [await bundleOld(commit, folder), await bundleNew()];
});
afterAll(() => rmSync(folder, { recursive: true }));

/** `judged-qa` asks a judge, the long row goes through R2 and the queue of scores, and `tool-sql` has a database. */
function runsAt(base_url: string): RunRequestInput[] {
  const endpoint = { base_url, api_key: "a-key-of-the-endpoint" };
  const play = { endpoint, max_concurrent: 3, min_scored: 0 };
  const qa = Array.from({ length: 6 }, (_, at) => ({ question: `What is ${at}?`, answer: `${at}` }));
  const graders = [
    { type: "string_check", name: "same", operation: "eq", input: "{{sample.output_text}}", reference: "x" },
  ];
  return [
    { ...play, model: modelOf(0), environment: "grid-walk", num_examples: 6, rollouts_per_example: 2 },
    {
      ...play,
      model: modelOf(1),
      environment: "judged-qa",
      dataset: qa,
      judges: { default: { endpoint, model: "judge" } },
    },
    {
      ...{
        ...play,
        model: modelOf(2),
        environment: "graded-dataset",
        environment_args: { graders },
        rollouts_per_example: 3,
      },
      dataset: [{ question: "This row is long. ".repeat(2500) }, { question: "short" }],
    },
    { ...play, model: modelOf(3), environment: "tool-sql", num_examples: 4 },
  ];
}
const ROLLOUTS = [12, 6, 6, 4];

/** Each run has a model of its own, so that its calls can be told apart. */
function modelOf(run: number): string {
  return `run-${run}`;
}

/** Answers after every `hold` requests only once `go` was called: then those that wait are in flight. */
async function startModel() {
  const prompts = new Map<string, string>();
  const changed: string[] = [];
  let free = 0;
  let waiting: (() => void)[] = [];
  const model = await startScriptedModel({
    async reply(request) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      const key = String(request.headers["idempotency-key"]);
      const prompt = JSON.stringify(request.messages);
      if ((prompts.get(key) ?? prompt) !== prompt) changed.push(key);
      prompts.set(key, prompt);
      return { ...answerOf(request), usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } };
    },
  });
  onTestFinished(() => model.stop());
  return {
    ...{ url: model.url, changed, requests: model.requests },
    /** Answers what waits, and so many more. */
    go(more: number) {
      free = more;
      for (const answer of waiting) answer();
      waiting = [];
    },
  };
}

function answerOf({ model, messages, tools }: ModelRequest): ReplyParts {
  if (model === "judge") return { content: '{"reason": "because", "verdict": "right"}' };
  const asks = tools.some(({ function: { name } }) => name === "query") && messages.at(-1)?.role !== "tool";
  if (asks) return { tool_calls: [{ name: "query", arguments: { sql: "SELECT 1 AS one" } }] };
  return { content: textOf(messages.at(-1)).length > 1000 ? "x" : "42" };
}

/** What both versions say about an ended run. */
async function reportOf(client: RollcallClient, id: string) {
  const { status, counts, report, cost } = await client.runs.get(id);
  const rollouts: unknown[] = [];
  for await (const { id: rollout, reward, outcome, turns } of client.rollouts.list(id)) {
    rollouts.push([rollout, outcome, reward, turns]);
  }
  const { reward, turns, usage } = report;
  return { status, counts, reward, turns, usage, cost, rollouts: rollouts.sort() };
}

async function chargedIn(client: RollcallClient): Promise<string[]> {
  const sources: string[] = [];
  for await (const { kind, source_id } of client.ledger.list()) if (kind === "rollout") sources.push(String(source_id));
  return sources;
}

/** The objects and the consumers of both versions in every combination, so that each follows on each other one. */
function mixes(): Mix[] {
  if (before === null || after === null) throw new Error("nothing was bundled");
  return [
    { objects: before, consumers: before },
    { objects: before, consumers: after },
    { objects: after, consumers: before },
    { objects: before, consumers: before },
    { objects: after, consumers: after },
    { objects: before, consumers: after },
  ];
}

/** The APIs of both versions, with the first key. */
interface Apis {
  readonly ofObjects: (mix: Mix) => RollcallClient;
  readonly ofConsumers: (mix: Mix) => RollcallClient;
}

/** A paying organisation on a platform that runs the first mix. */
async function openPlatform(first: Mix) {
  const platform = new LivePlatform();
  await platform.boot(first);
  const made = await platform.client(first.objects).organizations.bootstrap({ name: "a laboratory" });
  const key = made.key.key ?? "";
  const apis: Apis = {
    ofObjects: ({ objects }) => platform.client(objects, key),
    ofConsumers: ({ consumers }) => platform.client(consumers, key),
  };
  await apis.ofObjects(first).organizations.update(made.id, { billing: "postpaid" });
  await apis.ofObjects(first).ledger.topUp({ organization: made.id, amount_micros: 50_000_000 });
  return { platform, apis };
}

async function unended(client: RollcallClient, ids: readonly string[]): Promise<string[]> {
  const runs = await Promise.all(ids.map((id) => client.runs.get(id)));
  return runs.filter(({ finished_at }) => finished_at === null).map(({ id }) => id);
}

type Opened = Awaited<ReturnType<typeof openPlatform>>;
type Model = Awaited<ReturnType<typeof startModel>>;

/** Creates and plays the runs, one mix after the other until they have ended. Returns their ids. */
async function playAll({ platform, apis }: Opened, model: Model, order: readonly Mix[], answers: number) {
  const ids: string[] = [];
  const wanted = runsAt(model.url);
  for (let boots = 0; boots < MOST_BOOTS; boots += 1) {
    const mix = order[boots % order.length];
    if (mix === undefined) throw new Error("no mix");
    if (boots > 0) await platform.boot(mix);
    // The API of either version creates runs, and reads those of the other.
    const creator = boots % 2 === 0 ? apis.ofObjects(mix) : apis.ofConsumers(mix);
    const request = wanted[ids.length];
    if (request !== undefined) ids.push((await creator.runs.create(request)).id);
    const seen = model.requests.length;
    model.go(answers);
    const isOver = async () => ids.length === wanted.length && (await unended(apis.ofObjects(mix), ids)).length === 0;
    // A call of the newest run: these consumers have taken a message of these objects.
    const hasStarted = () => model.requests.some((asked) => asked.model === modelOf(ids.length - 1));
    // The next kill meets calls in flight.
    const hasCalls = () => model.requests.length > seen + answers;
    await vi.waitUntil(async () => (hasStarted() && hasCalls()) || (await isOver()), WAIT);
    if (await isOver()) return ids;
  }
  throw new Error(`the runs have not ended after ${MOST_BOOTS} changes`);
}

const MOST_BOOTS = 200;

async function checkRecords(client: RollcallClient, ids: readonly string[]): Promise<void> {
  await vi.waitUntil(async () => {
    const audits = await Promise.all(ids.map((id) => client.runs.audit(id)));
    return audits.every(({ holds, counts }, at) => holds && counts.dispatched === ROLLOUTS[at]);
  }, WAIT);
  const all = ROLLOUTS.reduce((sum, count) => sum + count, 0);
  await vi.waitUntil(async () => (await chargedIn(client)).length >= all, WAIT);
  const charged = await chargedIn(client);
  expect([charged.length, new Set(charged).size]).toEqual([all, all]);
  expect((await client.ledger.verify()).ok).toBe(true);
}

describe.skipIf(commit === null)("while release 0.2.0 and this version are live at once", () => {
  test.for([
    { answers: 2, from: 0 },
    { answers: 5, from: 3 },
  ])("runs are played, each rollout once, with a change after every $answers answers", async ({ answers, from }) => {
    const model = await startModel();
    const order = [...mixes().slice(from), ...mixes().slice(0, from)];
    const [first] = order;
    if (first === undefined) throw new Error("no mix");
    const opened = await openPlatform(first);
    const ids = await playAll(opened, model, order, answers);

    const reports: unknown[] = [];
    for (const mix of mixes()) {
      await opened.platform.boot(mix);
      for (const client of [opened.apis.ofObjects(mix), opened.apis.ofConsumers(mix)]) {
        await checkRecords(client, ids);
        reports.push(await Promise.all(ids.map((id) => reportOf(client, id))));
      }
    }
    expect(reports[0]).toMatchObject(
      ROLLOUTS.map((count) => ({ status: "completed", counts: { planned: count, scored: count, in_flight: 0 } })),
    );
    for (const report of reports) expect(report).toEqual(reports[0]);
    expect(model.changed).toEqual([]);
  });
});

test("this clone has release 0.2.0", ({ skip }) => {
  skip(commit === null, MISSING);
});
