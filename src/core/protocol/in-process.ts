/** Environment code in this isolate. */

import type * as z from "zod";
import { messageOf } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { MemberRows } from "../../contract/member-rows.ts";
import { type AnyEnvironment, holdsSomething, tearDown } from "../environments/any-environment.ts";
import type { OfferedForScoring } from "../environments/capabilities.ts";
import { secretFrom } from "../environments/capabilities.ts";
import type { Dataset } from "../environments/dataset.ts";
import type { EnvironmentLoader } from "../environments/define-environment.ts";
import { valueAt } from "../field-path.ts";
import { redact } from "../redact.ts";
import { type Harness, offeredTools, openHarness } from "../rollout/harness.ts";
import { buildTask, parseRow, RowError, rowAt } from "../rollout/task.ts";
import { scoreAsking } from "../rubrics/score.ts";
import { checkWithin } from "../rubrics/work.ts";
import { inputSchema } from "../schema/json-schema.ts";
import { withinTime } from "../step-timer.ts";
import {
  type ArgumentsFault,
  type DatasetDescription,
  ENVIRONMENT_PROTOCOL,
  type EnvironmentCode,
  type EnvironmentDescription,
  type Fetched,
  type GroupToScore,
  type LoadableEnvironment,
  type Opening,
  type Player,
  type RolloutHost,
  type ScoringHost,
  type Secrets,
  type TaskReply,
  type TaskSource,
} from "./environment-code.ts";

/** The exports of an environment's module. */
export type Loader = Pick<EnvironmentLoader<z.ZodObject>, "args" | "needs" | "load">;

export function loadableOf({ args: schema, needs, load }: Loader): LoadableEnvironment {
  return {
    get args() {
      return inputSchema(schema) as JsonObject;
    },
    needs,
    checkArguments: async (args, work) => {
      const parsed = checkWithin(() => schema.safeParse(args), work);
      return parsed.success ? null : faultOf(parsed.error.issues[0], args);
    },
    load: async (args) => codeOf(await load(args)),
  };
}

function faultOf(issue: z.core.$ZodIssue | undefined, args: unknown): ArgumentsFault {
  const path = (issue?.path ?? []).map((key) => (typeof key === "number" ? key : String(key)));
  const [unknown] = issue?.code === "unrecognized_keys" ? issue.keys : [];
  if (unknown !== undefined) return { kind: "unknown", path: [...path, unknown], message: null };
  const missing = issue?.code === "invalid_type" && valueAt(args, path) === undefined;
  return { kind: missing ? "missing" : "invalid", path, message: issue?.message ?? null };
}

/** Capabilities of an author's test. */
export type OwnCapabilities = Partial<OfferedForScoring>;

/** `own`: the environment gets these instead of the host's, with the clock of the host by default. */
export function codeOf(environment: AnyEnvironment, own: OwnCapabilities | null = null): EnvironmentCode {
  const offered: Offer = (host, secrets) => (own === null ? capabilitiesOf(host, secrets) : { now: host.now, ...own });
  return {
    description: describe(environment),
    task: async (source) => taskOf(environment, source),
    tools: async (rollout) => offeredTools(environment, rollout),
    play: async (opening, host) => new InProcessPlayer(environment, opening, host, offered),
    score: (group, host) => scoreGroup(environment, group, host, offered),
    tearDown: () => tearDown(environment),
  };
}

/** Its parts are read when they are needed: the number of rows may run the code that makes them. */
function describe(environment: AnyEnvironment): EnvironmentDescription {
  const { needs, forkable, rubric, maxReward, members, players, dataset, evalDataset } = environment;
  return {
    protocol: ENVIRONMENT_PROTOCOL,
    needs,
    forkable,
    get scores() {
      const functions = rubric.rubrics.flatMap((each) => each.functions);
      return functions.map(({ name, weight, group }) => ({ name, weight, group }));
    },
    judges: rubric.judges,
    judgements: rubric.judgements,
    maxReward,
    players: players.map(({ sampling, maxTurns, maxSeqLen, timeoutMs }, at) => {
      const member = members[at] ?? null;
      const player = { member, sampling, maxTurns, maxSeqLen, timeoutMs };
      if (member === null) return player;
      return {
        ...player,
        get rows() {
          return rowsOfPlayer(environment, at);
        },
      };
    }),
    dataset: describeDataset(dataset),
    evalDataset: evalDataset && describeDataset(evalDataset),
    tearsDown: holdsSomething(environment),
  };
}

/** Null if the rows come with the run, or if they cannot be made: that error is in the description of the dataset. */
function rowsOfPlayer(environment: AnyEnvironment, at: number): MemberRows | null {
  if (countRows(environment.dataset).fault !== null) return null;
  return environment.memberRows?.()?.[at] ?? null;
}

function describeDataset(dataset: Dataset<unknown>): DatasetDescription {
  return {
    kind: dataset.kind,
    get length() {
      return countRows(dataset).length;
    },
    get fault() {
      return countRows(dataset).fault;
    },
    get row() {
      return inputSchema(dataset.schema) as JsonObject;
    },
  };
}

function countRows(dataset: Dataset<unknown>): Pick<DatasetDescription, "length" | "fault"> {
  try {
    return { length: dataset.length, fault: null };
  } catch (thrown) {
    return { length: null, fault: messageOf(thrown) };
  }
}

function taskOf(environment: AnyEnvironment, source: TaskSource): TaskReply {
  try {
    const row = rowOf(environment, source);
    const task = buildTask(environment, row, source.index);
    return { row, task, member: environment.route({ task: row, info: task.info }).member };
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    const { index, column, message } = thrown;
    return { fault: { index, column, message } };
  }
}

function rowOf({ dataset, evalDataset }: AnyEnvironment, source: TaskSource) {
  const { index } = source;
  if (source.kind === "parsed") return source.row;
  const rows = source.training ? dataset : (evalDataset ?? dataset);
  return source.kind === "own" ? rowAt(rows, index, source.seed) : parseRow(rows, source.row, index);
}

class InProcessPlayer implements Player {
  readonly #harness: Harness;

  constructor(
    environment: AnyEnvironment,
    { rollout_id, row, seed, secrets }: Opening,
    host: RolloutHost,
    offered: Offer,
  ) {
    const signal = { aborted: false };
    this.#harness = openHarness(environment, row, {
      rolloutId: rollout_id,
      seed,
      signal,
      secrets: Object.values(secrets),
      capabilities: offered(host, secrets),
      sql: host.sql,
      unrepeatable: host.unrepeatable,
      limit: (stage, what, work) =>
        withinTime(work, () => {
          const timer = host.timer(stage, what);
          void timer.over.then(() => {
            signal.aborted = true;
          });
          return timer;
        }),
    });
  }

  perform: Player["perform"] = async (effect, rollout) => {
    const event = await this.#harness.perform(effect, rollout);
    return { event, tools: this.#harness.offered };
  };

  dispose: Player["dispose"] = () => this.#harness.dispose();
}

async function scoreGroup(
  environment: AnyEnvironment,
  { members, secrets, judges }: GroupToScore,
  host: ScoringHost,
  offered: Offer,
): ReturnType<EnvironmentCode["score"]> {
  const { hash, work, pause, timer } = host;
  const scored = await scoreAsking(environment, members, judges && { ...judges, hash }, {
    capabilities: offered(host, secrets),
    limit: (what, doing) => withinTime(doing, () => timer(what)),
    ...(work && { work }),
    pause,
  });
  return { ...scored, records: redact(scored.records, Object.values(secrets)) };
}

type Offer = (host: Pick<RolloutHost, "now" | "fetch">, secrets: Secrets) => OfferedForScoring;

function capabilitiesOf({ now, fetch }: Parameters<Offer>[0], secrets: Secrets): OfferedForScoring {
  return {
    now,
    fetch: async (url, options) => {
      const { status, headers, text }: Fetched = await fetch(url, options);
      const values = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
      return { status, headers: { get: (name) => values.get(name.toLowerCase()) ?? null }, text: async () => text };
    },
    secret: secretFrom(secrets),
  };
}
