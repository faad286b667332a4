/**
 * The functions that an isolate gets with one call, and the time of that call.
 *
 * Invariants. They end with their call, whatever the code keeps of them. Their arguments come from code that may be
 * malicious: they are parsed, and counted. The time of the stage runs here too, so a call ends even if its code asks for
 * no timer and never answers. A stage begins when the code asks for the timer of its first step, and no earlier stage
 * can begin after it.
 */
import { RpcTarget } from "cloudflare:workers";
import * as z from "zod";
import { EnvError, isError, messageOf, nameOf, StageTimeoutError } from "../contract/errors.ts";
import { LIMITS } from "../contract/limits.ts";
import { Count } from "../contract/primitives.ts";
import { mustDeclare, requireFetch } from "../core/environments/capabilities.ts";
import type { FetchOptions, Need } from "../core/environments/contract.ts";
import type { SqlRow } from "../core/environments/rollout-sql.ts";
import type { Fetched, RolloutHost, ScoringHost } from "../core/protocol/environment-code.ts";
import type { Answer, ServingRollout, ServingScores } from "../core/protocol/served.ts";
import type { Rollout } from "../core/rollout/rollout.ts";
import { listOf } from "../core/schema/bounded-lists.ts";
import type { StepTimer, TimeUp } from "../core/step-timer.ts";

const Url = z.string();
const SendOptions = z.object({
  method: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
  timeoutMs: z.number().optional(),
  sign: z.object({ secret: z.string(), id: z.string() }).optional(),
});
const Query = z.object({
  place: z.object({ effect: z.string(), call: Count }),
  query: z.string(),
  params: listOf(z.union([z.string(), z.number(), z.null()]), LIMITS.sqlParameters),
});
const Tool = z.string().min(1).max(LIMITS.nameCharacters);
const StepNumber = Count;
const RolloutStep = z.object({ stage: z.enum(["setup", "turn", "tool", "cleanup"]), what: z.string() });
const ScoringStep = z.enum(["scoring", "cleanup"]);
type RolloutStage = z.infer<typeof RolloutStep>["stage"];
type ScoringStage = z.infer<typeof ScoringStep>;

/** The stages of a rollout and of scoring, in order. A tool is a part of its turn. */
const ORDER = { setup: 0, turn: 1, tool: 1, scoring: 1, cleanup: 2 } as const;
type CallStage = keyof typeof ORDER;
const WHOLE = {
  setup: "the setup",
  turn: "the environment's reply",
  tool: "the environment's reply",
  scoring: "scoring",
  cleanup: "closing",
} as const;

type Timer<Stage> = (stage: Stage, what: string) => StepTimer;

/** One call of an isolate. */
class Call<Stage extends CallStage> {
  /** Rejects if the code does not answer although its time is over, or makes too many calls. */
  readonly givenUp: Promise<never>;
  readonly #giveUp: (error: Error) => void;
  readonly #timer: Timer<Stage>;
  readonly #steps = new Map<number, () => void>();
  #stage: Stage;
  #stopStage: () => void = () => undefined;
  #grace: ReturnType<typeof setTimeout> | undefined;
  #ended = false;
  #made = 0;
  #open = 0;
  #characters = 0;

  constructor(stage: Stage, timer: Timer<Stage>) {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => undefined);
    this.givenUp = promise;
    this.#giveUp = reject;
    this.#timer = timer;
    this.#stage = stage;
    this.#begin(stage);
  }

  /** The functions of the call are refused from now on. */
  end(): void {
    this.#ended = true;
    for (const end of this.#steps.values()) end();
    this.#stopStage();
    clearTimeout(this.#grace);
  }

  /** Rejects if the call has ended. */
  async made<T>(call: () => Promise<T>): Promise<T> {
    this.#count();
    return await call();
  }

  /** Returns null and gives the call up if `work` throws: a rejection would be an error in the runtime's log. */
  async orGiveUp<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (thrown) {
      this.#giveUp(isError(thrown, Error) ? thrown : new EnvError(messageOf(thrown)));
      return null;
    }
  }

  /** As `made`, for a call that may take long. `characters`: the size of its arguments. */
  async answered<T>(read: () => { readonly characters: number; readonly call: () => Promise<T> }): Promise<Answer<T>> {
    try {
      this.#count();
      const { characters, call } = read();
      this.#characters += characters;
      this.#open += 1;
      try {
        if (this.#open > LIMITS.isolateCallsAtOnce) {
          throw new EnvError(`more than ${LIMITS.isolateCallsAtOnce} calls at once`);
        }
        if (this.#characters > LIMITS.isolateCallCharacters) {
          throw new EnvError(`calls with more than ${LIMITS.isolateCallCharacters} characters at once`);
        }
        return { value: await call() };
      } finally {
        this.#open -= 1;
        this.#characters -= characters;
      }
    } catch (thrown) {
      return { error: { error: nameOf(thrown), message: messageOf(thrown) } };
    }
  }

  /** Null once the call has ended: code may go on after it answered. */
  async late(number: number, stage: Stage, what: string): Promise<TimeUp | null> {
    if (this.#ended) return null;
    this.#count();
    if (this.#steps.has(number)) throw new EnvError(`the step ${number} has begun already`);
    if (this.#steps.size >= LIMITS.isolateCallsAtOnce) {
      throw new EnvError(`more than ${LIMITS.isolateCallsAtOnce} steps at once`);
    }
    // Closing has many steps, and each has its own time.
    if (ORDER[stage] > ORDER[this.#stage] || stage === "cleanup") this.#begin(stage);
    const { over, stop } = this.#timer(stage, what);
    const { promise: ended, resolve } = Promise.withResolvers<null>();
    this.#steps.set(number, () => resolve(null));
    try {
      return await Promise.race([over, ended]);
    } finally {
      stop();
      this.#steps.delete(number);
    }
  }

  async ended(number: unknown): Promise<void> {
    if (this.#ended) return;
    this.#count();
    this.#steps.get(checked(StepNumber, number))?.();
  }

  #count(): void {
    if (this.#ended) throw new EnvError("the call that this function came with has ended");
    this.#made += 1;
    if (this.#made <= LIMITS.isolateCalls) return;
    const error = new EnvError(`it made more than ${LIMITS.isolateCalls} calls of the platform in one call`);
    this.#giveUp(error);
    throw error;
  }

  /** Begins the time of a stage. What is late has a moment to say so itself. */
  #begin(stage: Stage): void {
    this.#stopStage();
    this.#stage = stage;
    const { over, stop } = this.#timer(stage, WHOLE[stage]);
    let current = true;
    this.#stopStage = () => {
      current = false;
      stop();
    };
    void over.then(({ message, whole }) => {
      if (!current || this.#ended) return;
      clearTimeout(this.#grace);
      this.#grace = setTimeout(() => this.#giveUp(new StageTimeoutError(message, whole)), LIMITS.isolateGraceMs);
    });
  }
}

/** A call with the functions of its host. `end` must be called after it. */
export interface HostedCall<Serving> {
  readonly serving: Serving;
  readonly givenUp: Promise<never>;
  readonly end: () => void;
}

interface Fetching {
  readonly fetch: RolloutHost["fetch"];
  readonly needs: readonly Need[];
}

/** One object with methods crosses as one stub, which costs less than a stub for each function. */
class Functions<Stage extends CallStage> extends RpcTarget {
  readonly #call: Call<Stage>;
  readonly #fetching: Fetching;

  constructor(call: Call<Stage>, fetching: Fetching) {
    super();
    this.#call = call;
    this.#fetching = fetching;
  }

  fetch(url: unknown, options: unknown): Promise<Answer<Fetched>> {
    const { fetch, needs } = this.#fetching;
    return this.#call.answered(() => {
      const to = checked(Url, url);
      const given = checked(SendOptions, options);
      requireFetch(needs, to, { ...(given.sign && { sign: given.sign }) });
      // The compiler distinguishes a member that is undefined from one that is absent.
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as FetchOptions;
      return {
        characters: to.length + sizeOf(Object.values({ ...given.headers, body: given.body })),
        call: () => fetch(to, set),
      };
    });
  }

  async ended(number: unknown): Promise<void> {
    await this.#call.orGiveUp(() => this.#call.ended(number));
  }
}

class RolloutFunctions extends Functions<RolloutStage> implements ServingRollout {
  readonly #call: Call<RolloutStage>;
  readonly #host: RolloutHost;
  readonly #needs: readonly Need[];
  readonly #effects: readonly string[];

  constructor(call: Call<RolloutStage>, host: RolloutHost, needs: readonly Need[], turn: number) {
    super(call, { fetch: host.fetch, needs });
    this.#call = call;
    this.#host = host;
    this.#needs = needs;
    this.#effects = ["setup", "reply", "close", "live"].map((purpose) => `${purpose}:${turn}`);
  }

  late(number: unknown, step: unknown): Promise<TimeUp | null> {
    return this.#call.orGiveUp(() => {
      const { stage, what } = checked(RolloutStep, step);
      return this.#call.late(checked(StepNumber, number), stage, what.slice(0, LIMITS.nameCharacters));
    });
  }

  sql(...given: readonly unknown[]): Promise<Answer<readonly SqlRow[]>> {
    return this.#call.answered(() => {
      mustDeclare("sql", this.#needs);
      const { place, query, params } = checked(Query, { place: given[0], query: given[1], params: given[2] });
      if (!this.#effects.includes(place.effect)) {
        throw new EnvError(`sql: ${place.effect.slice(0, 50)} is not performed now`);
      }
      const call = async () => await this.#host.sql.exec(place, query, params);
      return { characters: query.length + sizeOf(params), call };
    });
  }

  unrepeatable(tool: unknown): Promise<void> {
    return this.#call.made(async () => await this.#host.unrepeatable(checked(Tool, tool)));
  }
}

class ScoringFunctions extends Functions<ScoringStage> implements ServingScores {
  readonly #call: Call<ScoringStage>;

  constructor(call: Call<ScoringStage>, fetching: Fetching) {
    super(call, fetching);
    this.#call = call;
  }

  late(number: unknown, step: unknown): Promise<TimeUp | null> {
    return this.#call.orGiveUp(() => this.#call.late(checked(StepNumber, number), checked(ScoringStep, step), ""));
  }
}

/** For the effects of a rollout, from the one of `stage` on. */
export function hostRollout(
  host: RolloutHost,
  needs: readonly Need[],
  { turns }: Pick<Rollout, "turns">,
  stage: Exclude<RolloutStage, "tool">,
): HostedCall<ServingRollout> {
  const call = new Call<RolloutStage>(stage, host.timer);
  return hosted(call, new RolloutFunctions(call, host, needs, turns.length));
}

export function hostScores({ fetch, timer }: ScoringHost, needs: readonly Need[]): HostedCall<ServingScores> {
  const call = new Call<ScoringStage>("scoring", (stage) => timer(stage));
  return hosted(call, new ScoringFunctions(call, { fetch, needs }));
}

function hosted<Stage extends CallStage, Serving>(call: Call<Stage>, serving: Serving): HostedCall<Serving> {
  return { serving, givenUp: call.givenUp, end: () => call.end() };
}

function sizeOf(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 0), 0);
}

function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new EnvError(
    `a call of the platform: ${(issue?.path ?? []).join(".")} ${issue?.message}`.slice(0, LIMITS.errorCharacters),
  );
}
