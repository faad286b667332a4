/**
 * Validates the code of a bundle, in two isolates that nothing else uses.
 *
 * Invariants. Whatever the bundle does, there is a record: only a passing fault of the platform below is thrown. Rows,
 * turns, calls and time are bounded; at a bound, the record has what was found before, and an error. The code gets
 * neither secrets nor the network nor a database: if it needs one, nothing is played. The record is JSON of at most
 * 64 KiB.
 */
import { isError, messageOf, RolloutError } from "../contract/errors.ts";
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { fetches } from "../core/environments/capabilities.ts";
import {
  type ArgumentsFault,
  ENVIRONMENT_PROTOCOL,
  type EnvironmentCode,
  type Player,
} from "../core/protocol/environment-code.ts";
import { argumentsWork } from "../core/rubrics/work.ts";
import type { StepTimer } from "../core/step-timer.ts";
import { SEED, UnfinishedError } from "../core/validation/plays.ts";
import { RANDOM_SEED } from "../core/validation/policies.ts";
import { unplayed, type Validation, validateEnvironment } from "../core/validation/validate.ts";
import { isPassing } from "../kernel/kit/storage-faults.ts";
import { type Bundle, isolatedEnvironment } from "./isolated-code.ts";

/** `calls`: below the 10,000 subrequests that an invocation may make. */
const VALIDATION_LIMITS = { rows: 20, turns: 20, calls: 8000, stepMs: 10_000, totalMs: 60_000 };

/** Characters. One has at most six bytes in JSON: so messages, names and errors have less than 60 KiB. */
const MESSAGE = 400;
const NAME = 64;
const ERROR = 200;
const FUNCTIONS = 10;
const JUDGEMENTS = 12;
const JUDGEMENT_TEXT = 32;

/** What is stored with a version. */
export interface ValidationRecord extends Validation {
  /** The protocol between platform and code that was used. */
  readonly protocol: number;
  readonly seeds: { readonly rows: number; readonly rollouts: number; readonly random: string };
  /** How many of `failed_functions` were left out. */
  readonly failed_functions_left_out: number;
  /** How many of `judgements` were left out. */
  readonly judgements_left_out: number;
  /** Calls of the environment for rows, effects and scores, for each of its replies; null if it replied to nothing. */
  readonly calls_per_turn: number | null;
  /** Milliseconds for which those calls were awaited, for each reply; other work of the process is included. */
  readonly wall_ms_per_turn: number | null;
  /** Always null: a Worker cannot read the CPU time of an isolate. */
  readonly cpu_ms_per_turn: null;
}

export interface ToValidate {
  readonly args: JsonObject;
  /** For a dataset whose rows come with the run. */
  readonly rows: readonly unknown[];
  readonly limits?: Partial<typeof VALIDATION_LIMITS>;
}

export async function validateBundle(
  env: Env,
  orgId: string,
  bundle: Bundle,
  { args, rows, limits }: ToValidate,
): Promise<ValidationRecord> {
  const bounds = { ...VALIDATION_LIMITS, ...limits };
  const budget = new Budget(env, bounds);
  try {
    return recordOf(await validate(env, orgId, bundle, { args, rows }, bounds, budget), budget);
  } catch (thrown) {
    budget.throwPassing();
    const check = thrown instanceof UnfinishedError ? "finished" : "rollouts";
    return recordOf(unplayed(check, messageOf(thrown)), budget);
  } finally {
    budget.close();
  }
}

type Bounds = typeof VALIDATION_LIMITS;

async function validate(
  env: Env,
  orgId: string,
  bundle: Bundle,
  { args, rows }: ToValidate,
  bounds: Bounds,
  budget: Budget,
): Promise<Validation> {
  const isolates = `${bundle.digest}:validation:${crypto.randomUUID()}`;
  const load = async (number: number): Promise<EnvironmentCode> => {
    const code = await isolatedEnvironment(env, orgId, { ...bundle, digest: `${isolates}:${number}` });
    const fault = await code.checkArguments(args, argumentsWork());
    if (fault !== null) throw new Error(sentenceOf(fault));
    return within(budget, await code.load(args));
  };
  let code: EnvironmentCode;
  let secondInstance: EnvironmentCode;
  try {
    code = await budget.bound(() => load(1));
    secondInstance = await budget.bound(() => load(2));
  } catch (thrown) {
    if (thrown instanceof UnfinishedError) throw thrown;
    return unplayed("build", `it cannot be built: ${messageOf(thrown)}`);
  }
  const timer = (what: string) => timerOf(what, bounds.stepMs);
  const { validatedCharacters: mostCharacters } = LIMITS;
  return validateEnvironment(
    {
      code,
      secondInstance,
      goldPolicy: "unknown",
      mostTurns: bounds.turns,
      mostCharacters,
      timer,
      later: (run) => run(),
    },
    { examples: bounds.rows, uploaded: rows, unmet: [], withheld: withheldNeeds(code) },
  );
}

function sentenceOf({ kind, path, message }: ArgumentsFault): string {
  const what = { unknown: "is not a known argument", missing: "is required", invalid: "does not fit" }[kind];
  return `${["args", ...path].join(".")}: ${message ?? what}`;
}

function withheldNeeds({ description }: EnvironmentCode): string[] {
  const { needs } = description;
  const withheld = needs.filter((need) => need === "sql" || need.startsWith("secret:") || fetches([need]));
  return withheld.map((need) => `${need} is not given to a validation`);
}

function timerOf(what: string, ms: number): StepTimer {
  const { promise: over, resolve } = Promise.withResolvers<{ message: string; whole: boolean }>();
  const timer = setTimeout(() => resolve({ message: `${what} took more than ${ms / 1000} s`, whole: false }), ms);
  return { over, stop: () => clearTimeout(timer) };
}

/** Measures the calls of the code, and ends a validation that makes too many or takes too long. */
class Budget {
  /** Of `measure`: calls, their time in milliseconds, and the replies of the environment among them. */
  calls = 0;
  ms = 0;
  turns = 0;
  /** All calls. */
  #made = 0;
  #passing: { readonly fault: unknown } | null = null;
  #spent: UnfinishedError | null = null;
  readonly #env: Env;
  readonly #most: number;
  readonly #over = Promise.withResolvers<never>();
  readonly #timer: ReturnType<typeof setTimeout>;

  constructor(env: Env, { calls, totalMs }: Bounds) {
    this.#env = env;
    this.#most = calls;
    this.#timer = setTimeout(() => this.#end(`the validation took more than ${totalMs / 1000} s`), totalMs);
    // Nothing may wait for it at that time.
    this.#over.promise.catch(() => undefined);
  }

  /** `bound` for a call that counts. */
  async measure<T>(call: () => Promise<T>): Promise<T> {
    this.calls += 1;
    const begun = Date.now();
    try {
      return await this.bound(call);
    } finally {
      this.ms += Date.now() - begun;
    }
  }

  /** Rejects with UnfinishedError at a bound, and if the platform below failed. */
  async bound<T>(call: () => Promise<T>): Promise<T> {
    if (this.#spent !== null) throw this.#spent;
    this.#made += 1;
    if (this.#made > this.#most) throw this.#end(`the validation made more than ${this.#most} calls`);
    try {
      return await Promise.race([this.#over.promise, call()]);
    } catch (thrown) {
      // An error of the library is the code's, although its cause may look like a fault of the platform.
      if (isError(thrown, RolloutError) || !isPassing(this.#env, thrown)) throw thrown;
      this.#passing ??= { fault: thrown };
      throw this.#end(messageOf(thrown));
    }
  }

  throwPassing(): void {
    if (this.#passing !== null) throw this.#passing.fault;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #end(why: string): UnfinishedError {
    this.#spent ??= new UnfinishedError(why);
    this.#over.reject(this.#spent);
    return this.#spent;
  }
}

/** The code with a budget for its calls. */
function within(budget: Budget, code: EnvironmentCode): EnvironmentCode {
  return {
    description: code.description,
    task: (source) => budget.measure(() => code.task(source)),
    tools: (rollout) => budget.measure(() => code.tools(rollout)),
    play: async (opening, host) => withinPlayer(budget, await code.play(opening, host)),
    score: (group, host) => budget.measure(() => code.score(group, host)),
    tearDown: () => budget.bound(() => code.tearDown()),
  };
}

function withinPlayer(budget: Budget, player: Player): Player {
  return {
    perform: (effect, rollout) => {
      if (effect.kind === "reply") budget.turns += 1;
      return budget.measure(() => player.perform(effect, rollout));
    },
    dispose: () => budget.bound(() => player.dispose()),
  };
}

function recordOf(validation: Validation, { calls, turns, ms }: Budget): ValidationRecord {
  const { checks, failed_functions: failed, judgements } = validation;
  const perTurn = (total: number) => (turns === 0 ? null : total / turns);
  return {
    ...validation,
    checks: checks.map((check) => ({ ...check, message: cut(check.message, MESSAGE) })),
    failed_functions: failed.slice(0, FUNCTIONS).map(({ name, count, first }) => {
      return { name: cut(name, NAME), count, first: cut(first, ERROR) };
    }),
    failed_functions_left_out: Math.max(0, failed.length - FUNCTIONS),
    judgements: judgements.slice(0, JUDGEMENTS).map(({ judge, judgement, error, ...rest }) => {
      const short = (text: string) => cut(text, JUDGEMENT_TEXT);
      return { ...rest, judge: short(judge), judgement: short(judgement), error: error && short(error) };
    }),
    judgements_left_out: Math.max(0, judgements.length - JUDGEMENTS),
    protocol: ENVIRONMENT_PROTOCOL,
    seeds: { rows: SEED, rollouts: SEED, random: RANDOM_SEED },
    calls_per_turn: perTurn(calls),
    wall_ms_per_turn: perTurn(ms),
    cpu_ms_per_turn: null,
  };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
