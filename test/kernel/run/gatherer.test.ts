/** One gatherer in front of a run's object that the test plays. */
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { gathererObject } from "../../../src/kernel/kit/names.ts";
import type { CallOf, GatheredCall, GatheredReply } from "../../../src/kernel/messages/gathered.ts";
import type { RolloutReport } from "../../../src/kernel/messages/wire.ts";
import { FAULTS } from "../../fakes/platform-fault-texts.ts";
import { interposed } from "../hand-made.ts";
import { idOf } from "../run-rows.ts";

const { RUN } = env;
afterEach(() => {
  env.RUN = RUN;
});

/** What the run's object replies to each merged call, instead of the real one. Returns the calls that arrived. */
function playRun(
  runId: string,
  reply: (calls: readonly GatheredCall[]) => readonly GatheredReply[] | Promise<readonly GatheredReply[]>,
): string[][] {
  const arrived: string[][] = [];
  env.RUN = interposed(RUN, "gathered", async (call, name, [calls]) => {
    if (!name.endsWith(runId)) return await call();
    const given = calls as readonly GatheredCall[];
    arrived.push(given.map(idIn));
    return await reply(given);
  });
  return arrived;
}

const idIn = ({ args }: GatheredCall) =>
  (args[0] as readonly RolloutReport[]).map((report) => report.rollout_id).join();

function callOf(slot: number, text = "{}"): CallOf<"answered"> {
  const place = { group: 0, slot, attempt: 0 };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const report: RolloutReport = {
    ...{ ...place, rollout_id: idOf(place), example_id: 0, task_key: "k", failure: null, cancelled: null },
    ...{ error: null, stop_run: null, digest: "d", bytes: 2, trajectory: text, stop_condition: "x", usage },
    ...{ is_truncated: false, turns: 1, calls: 1, started_at: 1, ended_at: 2 },
  };
  return { method: "answered", args: [[report]] };
}

/** The outcome of each of these calls to one gatherer: its answer, or its error. */
async function gathered(
  runId: string,
  calls: readonly CallOf<"answered">[],
  onRefused = () => undefined,
): Promise<string[]> {
  const run = { scope: { orgId: "org_gatherer", projectId: "pj" }, run_id: runId };
  const gatherer = gathererObject(env, run.scope, runId, 0);
  const replies = calls.map((call) => gatherer.gather<"answered">(run, call));
  for (const reply of replies) reply.catch(onRefused);
  const outcomes = await Promise.allSettled(replies);
  return outcomes.map((outcome) =>
    outcome.status === "fulfilled" ? (outcome.value[0]?.refused ?? "") : String(outcome.reason),
  );
}

const echo = (call: GatheredCall): GatheredReply => ({ done: [{ known: true, refused: idIn(call) }] });
const IDS = [0, 1, 2].map((slot) => idOf({ group: 0, slot, attempt: 0 }));

test("calls that arrive together are one call to the run's object, and each caller gets its own result", async () => {
  const runId = crypto.randomUUID();
  const arrived = playRun(runId, (calls) => calls.map(echo));
  expect(await gathered(runId, [callOf(0), callOf(1), callOf(2)])).toEqual(IDS);
  expect(arrived).toEqual([IDS]);
});

test("an error of one call is thrown for its caller only, with its name and message", async () => {
  const runId = crypto.randomUUID();
  playRun(runId, (calls) =>
    calls.map((call, at) => (at === 1 ? { failed: { name: "TypeError", message: "not this one" } } : echo(call))),
  );
  expect(await gathered(runId, [callOf(0), callOf(1), callOf(2)])).toEqual([IDS[0], "TypeError: not this one", IDS[2]]);
});

test("if a merged call fails, each of its calls is made alone, and only the one that is the reason fails", async () => {
  const runId = crypto.randomUUID();
  const arrived = playRun(runId, (calls) => {
    if (calls.some((call) => idIn(call) === IDS[1])) throw new Error("it cannot be read");
    return calls.map(echo);
  });
  expect(await gathered(runId, [callOf(0), callOf(1), callOf(2)])).toEqual([
    IDS[0],
    "Error: it cannot be read",
    IDS[2],
  ]);
  expect(arrived).toEqual([IDS, ...IDS.map((id) => [id])]);
});

test("a fault of the platform that passes fails every caller, and is not multiplied by the number of calls", async () => {
  const runId = crypto.randomUUID();
  const [fault = ""] = FAULTS.object ?? [];
  const arrived = playRun(runId, () => {
    throw new Error(fault);
  });
  const outcomes = await gathered(runId, [callOf(0), callOf(1), callOf(2)]);
  expect(outcomes).toEqual(IDS.map(() => `Error: ${fault}`));
  expect(arrived.length).toBe(1);
});

test("a call that the run's object left for later is sent again", async () => {
  const runId = crypto.randomUUID();
  const arrived = playRun(runId, (calls) => calls.map((call, at) => (at === 0 ? echo(call) : { later: true })));
  expect(await gathered(runId, [callOf(0), callOf(1), callOf(2)])).toEqual(IDS);
  expect(arrived.map((calls) => calls.length)).toEqual([3, 2, 1]);
});

test("calls that are too large together are sent one after another, and those that do not fit into memory are refused", async () => {
  const runId = crypto.randomUUID();
  const { promise: refused, resolve } = Promise.withResolvers<undefined>();
  // The run replies once the third call was refused: until then the other two are in memory.
  const arrived = playRun(runId, async (calls) => {
    await refused;
    return calls.map(echo);
  });
  const large = "x".repeat(10 * 1024 * 1024);
  const outcomes = await gathered(runId, [callOf(0, large), callOf(1, large), callOf(2, large)], () => {
    resolve(undefined);
    return undefined;
  });
  expect(outcomes.filter((outcome) => IDS.includes(outcome)).length).toBe(2);
  expect(outcomes.filter((outcome) => outcome.includes("overloaded")).length).toBe(1);
  expect(arrived.map((calls) => calls.length)).toEqual([1, 1]);
});

test("a run that does not exist answers through a gatherer as without", async () => {
  const run = { scope: { orgId: "org_gatherer", projectId: "pj" }, run_id: crypto.randomUUID() };
  const gatherer = gathererObject(env, run.scope, run.run_id, 0);
  expect(await gatherer.gather<"answered">(run, callOf(0))).toEqual([{ known: false }]);
  expect(await gatherer.gather<"admit">(run, { method: "admit", args: [[]] })).toBeNull();
});
