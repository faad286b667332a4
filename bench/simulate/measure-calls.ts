/**
 * Plays small runs on a local platform that counts its calls, and derives how many calls each event makes. Only counts
 * that do not depend on the speed of the machine are derived: calls per message, per turn, per rollout, and what a call
 * to a model reads from D1 in an isolate that has read nothing yet.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as z from "zod";
import type { EvalRequestInput } from "../../src/contract/eval-request.ts";
import { SETTINGS_KEPT_MS } from "../../src/kernel/kit/caches.ts";
import { bootPlatform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../../test/fakes/scripted-model.ts";
import { modelReply, workload } from "../workload.ts";
import type { CallCosts, Tables } from "./call-costs.ts";

const WORKER = join(import.meta.dirname, "counting-worker.ts");
const FOLDER = join(import.meta.dirname, "../../dist/counting");
const LARGE_CHARACTERS = 50_000;
/** They share an object, and one message starts them. */
const ROLLOUTS = 12;
/** The conversations of the two runs whose difference is the cost of a turn; the same environment plays both. */
const [FEW_TURNS, MANY_TURNS] = [6, 9] as const;

type Counted = Readonly<Record<string, number>>;

/** Boots a platform, plays, and stops it. `log` gets its lines. */
export async function measureCalls(log: (line: string) => void): Promise<CallCosts> {
  const platform = await bootPlatform({ directory: null, log, worker: { entry: WORKER, folder: FOLDER } });
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  let changes = 0;
  const models = await Promise.all([
    startScriptedModel({ reply: ({ messages }) => modelReply(FEW_TURNS, messages) }),
    startScriptedModel({ reply: ({ messages }) => modelReply(MANY_TURNS, messages) }),
    startScriptedModel({
      reply: () => ({ content: `The answer is 48.${" and so on".repeat(LARGE_CHARACTERS / 10)}` }),
    }),
    startScriptedModel({
      reply: async ({ messages }) => {
        // After the first reply, what the isolate keeps must be read again, although it was kept before.
        if (messages.every(({ role }) => role !== "assistant")) {
          changes += 1;
          await client.secrets.create({ name: `SECRET_${changes}`, value: "changes the version of the settings" });
          await pause(SETTINGS_KEPT_MS);
        }
        return modelReply(FEW_TURNS, messages);
      },
    }),
  ]);
  try {
    return await new Measurement(
      platform,
      models.map(({ url }) => url),
    ).measure();
  } finally {
    await Promise.all(models.map((model) => model.stop()));
    await platform.stop();
  }
}

class Measurement {
  readonly #url: string;
  readonly #client: RollcallClient;
  readonly #models: readonly string[];

  constructor({ url, key }: { readonly url: string; readonly key: string }, models: readonly string[]) {
    this.#url = url;
    this.#client = new RollcallClient({ baseUrl: url, apiKey: key });
    this.#models = models;
  }

  async measure(): Promise<CallCosts> {
    const [few = "", many = "", long = "", slow = ""] = this.#models;
    for (const [name, base_url] of Object.entries({ few, many, long, slow })) {
      await this.#client.endpoints.create({ name, base_url });
    }
    await this.#client.fleets.create({ name: "fleet", replicas: [{ name: "gpu-0", base_url: slow }] });
    const { environment } = workload(MANY_TURNS);
    const cold = await this.#play({ ...environment, endpoint: "slow", num_examples: 1 });
    const short = await this.#play({ ...environment, endpoint: "few", num_examples: ROLLOUTS });
    const longer = await this.#play({ ...environment, endpoint: "many", num_examples: ROLLOUTS });
    const fleet = await this.#play({ ...environment, fleet: "fleet", num_examples: 1 });
    const dataset = Array.from({ length: ROLLOUTS }, (_, at) => ({ question: `${at}?`, answer: "#### 48" }));
    const large = await this.#play({ environment: "gsm8k", dataset, endpoint: "long" });
    return costsOf({ cold, short, longer, fleet, large });
  }

  /** The counts of the request that creates the run, and those from its beginning until nothing more is counted. */
  async #play(of: Omit<EvalRequestInput, "model" | "kind">): Promise<Played> {
    const before = await this.#counts();
    const { id } = await this.#client.runs.create({ max_concurrent: ROLLOUTS, model: "model", ...of });
    const created = between(before, await this.#counts());
    for await (const _event of this.#client.runs.events(id));
    const { counts } = await this.#client.runs.get(id);
    if (counts.scored !== counts.planned) throw new Error(`${id} has scored ${counts.scored} of ${counts.planned}`);
    for (;;) {
      const all = between(before, await this.#counts());
      // The last message of a run compacts its trajectories, and the run's row is written after that.
      if (countOf(all, "consumer run-segments > run.folded") > 0) return { created, all };
    }
  }

  async #counts(): Promise<Counted> {
    const reply = await fetch(`${this.#url}/counts`);
    return z.record(z.string(), z.number()).parse(await reply.json());
  }
}

interface Played {
  readonly created: Counted;
  readonly all: Counted;
}

type Runs = Readonly<Record<"cold" | "short" | "longer" | "fleet" | "large", Played>>;

function costsOf({ cold, short, longer, fleet, large }: Runs): CallCosts {
  const rollouts = (of: Played) => countOf(of.all, "rollout > run.answered items");
  // Which rows a turn shares with others depends on when calls begin: a few more or fewer of many.
  const perTurn = Math.round(perOne(rowsOf(longer) - rowsOf(short), ROLLOUTS * (MANY_TURNS - FEW_TURNS)));
  const starts = sumOf(large.all, /^consumer rollout-groups(-\d)? messages$/);
  const scores = sumOf(large.all, /^consumer rollout-scores(-\d)? messages$/);
  const segments = countOf(short.all, "consumer run-segments messages");
  const kept = cold.created;
  return {
    create: {
      run_requests: countOf(kept, "http > run.create"),
      audit_requests: sumOf(kept, /^http > audit\.\w+$/),
      d1_reads: statementsOf(kept, /^http > d1 read (.*)$/),
      d1_writes: statementsOf(kept, /^http > d1 write (.*)$/),
      r2_class_a: countOf(kept, "http > r2 class A"),
    },
    start_message: {
      run_requests: perOne(sumOf(large.all, /^consumer rollout-groups(-\d)? > run\.\w+$/), starts),
      rollout_requests: perOne(sumOf(large.all, /^consumer rollout-groups(-\d)? > rollout\.\w+$/), starts),
      r2_class_b: perOne(sumOf(large.all, /^consumer rollout-groups(-\d)? > r2 class B$/), starts),
    },
    score_message: {
      run_requests: perOne(sumOf(large.all, /^consumer rollout-scores(-\d)? > run\.\w+$/), scores),
      r2_class_b_per_rollout: perOne(sumOf(large.all, /^consumer rollout-scores(-\d)? > r2 class B$/), rollouts(large)),
    },
    segment_message: {
      run_requests: perOne(sumOf(short.all, /^consumer run-segments > run\.\w+$/), segments),
      r2_class_a: perOne(countOf(short.all, "consumer run-segments > r2 class A"), segments),
    },
    large_rollout: { r2_class_a: perOne(countOf(large.all, "rollout > r2 class A"), rollouts(large)) },
    turn: { rollout_rows: perTurn },
    rollout: {
      reports: perOne(rollouts(short), ROLLOUTS),
      rollout_rows: Math.round(rowsOf(short) / ROLLOUTS - perTurn * FEW_TURNS),
    },
    isolate: {
      endpoint: tablesOf(cold.all, /^rollout > d1 read (.*)$/),
      // The allowed hosts of the organisation may be kept since an earlier run.
      fleet: tablesOf(fleet.all, /^rollout > d1 read (.*)$/).filter((table) => table !== "organizations"),
      version_requests: tablesOf(cold.all, /^rollout > (audit\.\w+)$/).length,
    },
    run_row: { d1_writes: tablesOf(cold.all, /^run > d1 write (runs)$/).length },
  };
}

/** What every request reads, and the isolate keeps. */
const KEPT_TABLES = ["api_keys", "organizations", "projects", "members", "people"];

function rowsOf({ all }: Played): number {
  return countOf(all, "rows rollout");
}

function countOf(counts: Counted, name: string): number {
  return counts[name] ?? 0;
}

function sumOf(counts: Counted, name: RegExp): number {
  return Object.entries(counts).reduce((sum, [key, count]) => (name.test(key) ? sum + count : sum), 0);
}

/** The tables, once each. */
function tablesOf(counts: Counted, name: RegExp): Tables {
  return Object.keys(counts).flatMap((key) => name.exec(key)?.[1] ?? []);
}

/** Statements, without those on tables whose rows every isolate keeps for a while. */
function statementsOf(counts: Counted, name: RegExp): number {
  const tables = Object.entries(counts).map(([key, count]) => [name.exec(key)?.[1] ?? null, count] as const);
  return tables.reduce((sum, [table, count]) => (table === null || KEPT_TABLES.includes(table) ? sum : sum + count), 0);
}

function between(before: Counted, after: Counted): Counted {
  const grown = Object.entries(after).map(([name, count]) => [name, count - countOf(before, name)] as const);
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

function perOne(count: number, of: number): number {
  return of === 0 ? 0 : count / of;
}
