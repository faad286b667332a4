/** Plays every policy on every example, and once more with a restart after each step. */

import { cloneJson, type Json } from "../../contract/json.ts";
import type { AnyEnvironment } from "../environments/any-environment.ts";
import { type PlayOptions, playTask, type RolloutReport } from "../rollout/play.ts";
import { firstDifference } from "./difference.ts";
import { type GoldPolicy, goldPolicies, nullPolicy, type Policy, type PolicyName, randomPolicy } from "./policies.ts";
import { type Example, SEED } from "./rows.ts";

/** A rollout that is asked more often than this, with no limit of its own, is taken to have no end. */
const MOST_TURNS = 100;

export interface Play {
  readonly policy: PolicyName;
  readonly example: number;
  /** Null when it was given up. */
  readonly report: RolloutReport | null;
  /** Why it was given up. */
  readonly fault: string | null;
  /** How the same play with restarts differs. */
  readonly restarted: string | null;
  /** How the same play differs each time, restarts or not. */
  readonly unsteady: string | null;
}

export interface Stage {
  readonly environment: AnyEnvironment;
  /** The same environment, made a second time: what a restart goes on with. */
  readonly twin: AnyEnvironment;
  readonly goldPolicy: GoldPolicy | null;
  readonly capabilities: NonNullable<PlayOptions["capabilities"]>;
  /** As in `PlayOptions`. */
  readonly openSqlite?: PlayOptions["openSqlite"];
  /** Runs something as if on another day, for what must not depend on the clock. */
  readonly later: <T>(run: () => Promise<T>) => Promise<T>;
}

/** One rollout a policy and example; of the gold forms the best one counts. */
export async function playAll(stage: Stage, examples: readonly Example[]): Promise<Play[]> {
  const plays: Play[] = [];
  for (const example of examples) {
    const gold = goldPolicies(stage.goldPolicy, example.task);
    if (gold.length > 0) plays.push(await playBest(stage, example, gold));
    plays.push(await play(stage, example, "null", nullPolicy));
    plays.push(await play(stage, example, "random", randomPolicy(example.index)));
  }
  return plays;
}

async function playBest(stage: Stage, example: Example, forms: readonly Policy[]): Promise<Play> {
  const plays: Play[] = [];
  for (const form of forms) plays.push(await play(stage, example, "gold", form));
  return plays.reduce((best, next) => (scoreOf(next) > scoreOf(best) ? next : best));
}

function scoreOf({ report }: Play): number {
  return report?.reward ?? Number.NEGATIVE_INFINITY;
}

async function play(stage: Stage, example: Example, policy: PolicyName, make: Policy): Promise<Play> {
  const straight = await attempt(stage, example, make, false);
  const restarted = straight.report === null ? straight : await attempt(stage, example, make, true);
  const changed = differenceOf(straight, restarted);
  const unsteady =
    changed === null ? null : differenceOf(straight, await stage.later(() => attempt(stage, example, make, false)));
  return {
    policy,
    example: example.index,
    ...straight,
    // A play that differs from itself says nothing about restarts.
    restarted: unsteady === null ? changed : null,
    unsteady,
  };
}

interface Attempt {
  readonly report: RolloutReport | null;
  readonly fault: string | null;
}

async function attempt(
  { environment, twin, capabilities, openSqlite }: Stage,
  example: Example,
  make: Policy,
  restartAfterEachTurn: boolean,
): Promise<Attempt> {
  const limit = Math.max(MOST_TURNS, environment.route(example.task).environment.maxTurns);
  try {
    const model = make();
    const report = await playTask(environment, example.task, {
      model: (request) => {
        if (request.turn < limit) return model(request);
        throw new Error(`no end after ${limit} model calls; set maxTurns or add a stop`);
      },
      seed: SEED,
      capabilities,
      ...(openSqlite && { openSqlite }),
      restartAfterEachTurn,
      twin,
    });
    return { report, fault: null };
  } catch (thrown) {
    return { report: null, fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function differenceOf(first: Attempt, second: Attempt): string | null {
  const found = firstDifference(asJson(first), asJson(second), "");
  return found?.replace(/^\.(report\.)?/, "") ?? null;
}

/** An attempt holds nothing but JSON; its type is wider. */
function asJson(attempt: Attempt): Json {
  return cloneJson<unknown>(attempt) as Json;
}
