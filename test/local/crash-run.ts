/**
 * A run of `calculator` through kill -9, seen from four sides: what the model was asked, what the API returns, what
 * each result says, and what D1 contains. The tests check the result.
 */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type ResultRow, RunView } from "../../src/contract/run.ts";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { type ArithmeticModel, startArithmeticModel, TURNS } from "./arithmetic-model.ts";
import { deathOf, endGroup, rebooted, type Served, serve, until } from "./served-platform.ts";

/** The process that gets kill -9. */
export type Victim = "node alone" | "workerd alone" | "the group";

interface CrashPlan {
  readonly rollouts: number;
  readonly maxConcurrent: number;
  readonly latencyMs: number;
  readonly port: number;
  /** Killed in this order, evenly spread over the run. */
  readonly victims: readonly Victim[];
}

/** A death of workerd: its calls to the model are cut off. */
interface Crash {
  /** The times between which workerd died, in epoch milliseconds. */
  readonly after: number;
  readonly before: number;
  /** Requests without an answer at the kill. */
  readonly unanswered: number;
  /** The platform's output when it came back. */
  readonly said: string;
}

export interface CrashAccount {
  readonly run: RunView;
  readonly results: readonly ResultRow[];
  readonly model: ArithmeticModel;
  readonly crashes: readonly Crash[];
  readonly d1: Pick<RunView, "status" | "counts" | "report">;
}

const RowInD1 = RunView.pick({ status: true, counts: true, report: true });

/** Longer than the kill needs, and longer than any start needs to find and end an orphan, which continues the run. */
const HELD_MS = WAIT_HANGS_MS;

/** Throws if the run does not end in time. */
export async function crashRun(plan: CrashPlan): Promise<CrashAccount> {
  const model = await startArithmeticModel(plan.latencyMs);
  const directory = makeThrowAwayDirectory();
  let served: Served | null = null;
  try {
    served = await serve(directory, plan.port);
    const { id } = await client(served).runs.create(requestOf(plan, model.url));
    const crashes: Crash[] = [];
    for (const [index, victim] of plan.victims.entries()) {
      await untilUnderWay(plan, model, index);
      const struck = await strike(victim, served, directory, plan, model);
      served = struck.served;
      crashes.push(struck.crash);
    }
    const run = await ended(client(served), id);
    const results: ResultRow[] = [];
    for await (const row of client(served).runs.results(id)) results.push(row);
    return { run, results, model, crashes, d1: await rowInD1(directory) };
  } finally {
    if (served !== null) {
      endGroup(served);
      await deathOf(served.workerd);
    }
    await model.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Kills the victim, restarts the platform if it does not come back by itself. Resolves when the run goes on. */
async function strike(
  victim: Victim,
  served: Served,
  directory: string,
  plan: CrashPlan,
  model: ArithmeticModel,
): Promise<{ served: Served; crash: Crash }> {
  const unanswered = model.unanswered();
  const death = deathOf(served.workerd).finally(() => model.setLatency(plan.latencyMs));
  kill(victim, served);
  const back = victim === "workerd alone" ? rebooted(directory, served) : serve(directory, plan.port);
  const [died, again] = await Promise.all([death, back]);
  await until(() => model.times().some((at) => at > died.before), WAIT_HANGS_MS);
  return { served: again, crash: { ...died, unanswered, said: again.said() } };
}

function kill(victim: Victim, { node, workerd, group }: Served): void {
  switch (victim) {
    case "node alone":
      process.kill(node.pid, "SIGKILL");
      return;
    case "workerd alone":
      process.kill(workerd.pid, "SIGKILL");
      return;
    case "the group":
      process.kill(-group, "SIGKILL");
  }
}

/**
 * Waits until the share of the run before this kill is done. From then on the model holds every answer until the kill,
 * so that half of the possible calls are in flight on a machine of any speed.
 */
async function untilUnderWay(plan: CrashPlan, model: ArithmeticModel, kills: number) {
  const share = ((kills + 1) / (plan.victims.length + 2)) * plan.rollouts * TURNS;
  await until(() => model.answered() >= share, WAIT_HANGS_MS);
  model.setLatency(HELD_MS);
  await until(() => model.unanswered() >= plan.maxConcurrent / 2, WAIT_HANGS_MS);
}

function requestOf(plan: CrashPlan, url: string) {
  return {
    environment: "calculator",
    model: "arithmetic",
    endpoint: { base_url: url },
    num_examples: plan.rollouts,
    max_concurrent: plan.maxConcurrent,
  };
}

async function ended(rollcall: RollcallClient, id: string): Promise<RunView> {
  for await (const _ of rollcall.runs.events(id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  return await rollcall.runs.get(id);
}

function client({ url, key }: Served): RollcallClient {
  return new RollcallClient({ baseUrl: url, apiKey: key });
}

/** The run's complete row in D1, which follows the run by about a second. Read from its file, without caches. */
async function rowInD1(directory: string): Promise<CrashAccount["d1"]> {
  const folder = join(directory, "store", "d1", "miniflare-D1DatabaseObject");
  const file = readdirSync(folder).find((name) => /^[0-9a-f]+\.sqlite$/.test(name)) ?? "";
  const database = new DatabaseSync(join(folder, file), { readOnly: true });
  try {
    const read = () => database.prepare("select status, counts, report, finished_at from runs").get();
    await until(() => read()?.["finished_at"] !== null, WAIT_HANGS_MS);
    const row = read();
    const [counts, report] = [row?.["counts"], row?.["report"]].map((text) => JSON.parse(String(text)));
    return RowInD1.parse({ status: row?.["status"], counts, report });
  } finally {
    database.close();
  }
}
