/**
 * Environment code in an isolate of its own: what its bundle exports for the platform. Its calls are calls of Workers RPC.
 *
 * Invariants. The calls are those of environment-code.ts, each with the arguments of the environment first, as one
 * isolate serves all of them. A result is the text of a JSON value: the platform measures it before it parses it, and it
 * holds nothing but data. A function in an argument or a result is a stub of the other side; the functions of a host
 * come with each call and end with it, so code that continues after its effect cannot use them. A call performs all effects
 * up to the next model call, so a turn is one call; the platform drops those that it does not need.
 */
import { EnvError, InfraError, type SerializedError, SqlWorkError } from "../../contract/errors.ts";
import { canonicalJson, type JsonObject } from "../../contract/json.ts";
import { commonPrefix, type Messages } from "../../contract/messages.ts";
import { historyOf, type StoredPrompt } from "../../contract/trajectory.ts";
import type { FetchOptions } from "../environments/contract.ts";
import type { Stage } from "../environments/hook-state.ts";
import type { SqlPlace, SqlRow, SqlValue } from "../environments/rollout-sql.ts";
import { advance, type Event, type HookEffect, nextEffect, type Rollout } from "../rollout/rollout.ts";
import type { AskedScores } from "../rubrics/score.ts";
import { argumentsWork, scoringGroupWork } from "../rubrics/work.ts";
import type { StepTimer, TimeUp } from "../step-timer.ts";
import type {
  ArgumentsFault,
  EnvironmentCode,
  EnvironmentDescription,
  Fetched,
  GroupToScore,
  LoadableEnvironment,
  OfferedTools,
  Opening,
  Performed,
  Player,
  TaskReply,
  TaskSource,
} from "./environment-code.ts";
import { type Loader, loadableOf } from "./in-process.ts";

/** The text of a JSON value of the type `T`. */
export type JsonText<T> = string & { readonly json?: T };

export interface ServedEnvironment {
  /** The schema of its arguments, and its needs without arguments. */
  outline(): Promise<JsonText<Pick<LoadableEnvironment, "args" | "needs">>>;
  checkArguments(args: JsonObject): Promise<JsonText<ArgumentsFault | null>>;
  describe(args: JsonObject): Promise<JsonText<EnvironmentDescription>>;
  task(args: JsonObject, source: TaskSource): Promise<JsonText<TaskReply>>;
  tools(args: JsonObject, rollout: Rollout): Promise<JsonText<OfferedTools>>;
  play(args: JsonObject, opening: Opening, host: ServingRollout, effect: HookEffect, rollout: Rollout): Promise<Begun>;
  score(args: JsonObject, group: GroupToScore, host: ServingScores, steps: number): Promise<JsonText<ServedScores>>;
}

/** A player, and what it performed first. */
export interface Begun extends ServedPlayer {
  readonly performed: JsonText<readonly ServedPerformed[]>;
}

export interface ServedPlayer {
  /** The effect, and those that follow it before the next model call. */
  readonly perform: (
    host: ServingRollout,
    effect: HookEffect,
    rollout: Rollout,
  ) => Promise<JsonText<readonly ServedPerformed[]>>;
  readonly dispose: (host: ServingRollout) => Promise<JsonText<SerializedError | null>>;
}

/** An event, in which a prompt holds only what differs from the messages before it. */
export interface ServedPerformed extends Pick<Performed, "tools"> {
  readonly event: ServedEvent;
}

type Replied = Extract<Event, { type: "replied" }>;
export type ServedEvent =
  | Exclude<Event, Replied>
  | (Omit<Replied, "prompt" | "continues"> & { readonly prompt: Omit<StoredPrompt, "after"> });

/** The messages that `keep` of a prompt counts: those of the turns so far, or before the first turn those of the task. */
export function messagesBefore({ turns, prompt }: Pick<Rollout, "turns" | "prompt">): Messages {
  return turns.length === 0 ? prompt : historyOf(turns);
}

/** `steps`: counted work. */
export type ServedScores = AskedScores & { readonly steps: number };

/** An answer of the host. Errors are data, as their classes do not cross. */
export type Answer<T> = { readonly value: T } | { readonly error: Pick<SerializedError, "error" | "message"> };

interface Serving<Step> {
  readonly fetch: (url: string, options: Omit<FetchOptions, "until">) => Promise<Answer<Fetched>>;
  /** Begins the time of step `number`. Answers when it is over, or null once the step has ended. */
  readonly late: (number: number, step: Step) => Promise<TimeUp | null>;
  readonly ended: (number: number) => Promise<void>;
}

export interface ServingRollout extends Serving<{ readonly stage: Stage; readonly what: string }> {
  readonly sql: (place: SqlPlace, query: string, params: readonly SqlValue[]) => Promise<Answer<readonly SqlRow[]>>;
  readonly unrepeatable: (tool: string) => Promise<void>;
}

export type ServingScores = Serving<"scoring" | "cleanup">;

/** Instances with their arguments that one isolate keeps. */
const KEPT = 16;

/** `hash`: SHA-256 as hex. */
export function serveEnvironment(loader: Loader, hash: (text: string) => string): ServedEnvironment {
  const loadable = loadableOf(loader);
  const loaded = new Map<string, Promise<EnvironmentCode>>();
  const load = (args: JsonObject): Promise<EnvironmentCode> => {
    const name = canonicalJson(args);
    const code = loaded.get(name) ?? loadable.load(args);
    loaded.delete(name);
    loaded.set(name, code);
    code.catch(() => loaded.delete(name));
    const [oldest] = loaded.keys();
    if (loaded.size > KEPT && oldest !== undefined) loaded.delete(oldest);
    return code;
  };
  return {
    outline: async () => textOf({ args: loadable.args, needs: loadable.needs }),
    checkArguments: async (args) => textOf(await loadable.checkArguments(args, argumentsWork())),
    describe: async (args) => textOf((await load(args)).description),
    task: async (args, source) => textOf(await (await load(args)).task(source)),
    tools: async (args, rollout) => textOf(await (await load(args)).tools(rollout)),
    play: async (args, opening, host, effect, rollout) => {
      let current = host;
      const player = await (await load(args)).play(opening, {
        ...servedBy(() => current),
        sql: { exec: async (...call) => valueIn(await current.sql(...call)) },
        unrepeatable: (tool) => current.unrepeatable(tool),
        timer: timersOf(
          () => current,
          (stage: Stage, what: string) => ({ stage, what }),
        ),
      });
      const perform: ServedPlayer["perform"] = async (now, first, from) => {
        current = now;
        return textOf(await performAll(player, first, from));
      };
      const dispose: ServedPlayer["dispose"] = async (now) => {
        current = now;
        return textOf(await player.dispose());
      };
      return { performed: await perform(host, effect, rollout), perform, dispose };
    },
    score: async (args, group, host, steps) => {
      const work = scoringGroupWork(steps);
      const timer = timersOf(
        () => host,
        (what: "scoring" | "cleanup") => what,
      );
      const scored = await (await load(args)).score(group, { ...servedBy(() => host), hash, work, timer });
      return textOf({ ...scored, steps: work.steps });
    },
  };
}

function textOf<T>(value: T): JsonText<T> {
  return JSON.stringify(value);
}

async function performAll(player: Player, effect: HookEffect, rollout: Rollout): Promise<ServedPerformed[]> {
  const performed: ServedPerformed[] = [];
  let [next, at]: [HookEffect, Rollout] = [effect, rollout];
  for (;;) {
    const done = await player.perform(next, at);
    performed.push({ event: servedEvent(done.event, at), tools: done.tools });
    const after = advance(at, done.event);
    const following = nextEffect(after);
    if (following.kind === "sample" || following.kind === "done" || after === at) return performed;
    [next, at] = [following, after];
  }
}

function servedEvent(event: Event, rollout: Rollout): ServedEvent {
  if (event.type !== "replied") return event;
  const keep = commonPrefix(messagesBefore(rollout), event.prompt);
  return { ...event, prompt: { keep, append: event.prompt.slice(keep) } };
}

function servedBy(host: () => Pick<ServingScores, "fetch">) {
  const fetch = async (url: string, { until, ...options }: FetchOptions = {}): Promise<Fetched> => {
    if (until !== undefined) throw new EnvError("fetch: until is not available to code in an isolate of its own");
    return valueIn(await host().fetch(url, options));
  };
  return { now: () => Date.now(), fetch };
}

function timersOf<Step, Args extends unknown[]>(host: () => Serving<Step>, stepOf: (...args: Args) => Step) {
  let begun = 0;
  return (...args: Args): StepTimer => {
    begun += 1;
    const number = begun;
    const { promise: over, resolve } = Promise.withResolvers<TimeUp>();
    // Without an answer the host is gone, and this call with it.
    const current = host();
    current.late(number, stepOf(...args)).then(
      (up) => up && resolve(up),
      () => undefined,
    );
    return { over, stop: () => void current.ended(number).catch(() => undefined) };
  };
}

function valueIn<T>(answer: Answer<T>): T {
  if ("value" in answer) return answer.value;
  const { error, message } = answer.error;
  if (error === "SqlWorkError") throw new SqlWorkError(message);
  throw error === "EnvError" ? new EnvError(message) : new InfraError(message);
}
