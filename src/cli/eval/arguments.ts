/**
 * Reads the flags of `rollcall eval`, and the flags of runs of any kind, and checks them as far as possible without a
 * platform.
 */

import { LIMITS } from "../../contract/limits.ts";
import { COMMAND } from "../../local/package-root.ts";
import {
  defined,
  environmentArgs,
  jsonObject,
  judgeTargets,
  portOf,
  readText,
  urlOf,
  variableNamedBy,
} from "../argument-values.ts";
import type { CommandLine, PLATFORM_FLAGS } from "../command-line.ts";
import { type DatasetArgument, datasetArgument } from "../dataset-argument.ts";
import { usageError } from "../exit.ts";
import { type ConnectArguments, platformAsked } from "../on-platform.ts";
import type { EVAL_FLAGS, GENERATE_FLAGS, PLAY_FLAGS } from "../run-flags.ts";
import { dollarsText } from "../terminal/format.ts";
import { type AgentProgram, agentArguments } from "./agent.ts";
import type { DraftRequest } from "./draft-request.ts";
import { baselineArgument, type GateArguments } from "./gates.ts";

/** The flags of a run of any kind. */
export interface RunArguments {
  readonly json: boolean;
  readonly draft: DraftRequest;
  readonly dataset: DatasetArgument | null;
  /** The built-in policy may play environments that it was not trained on. */
  readonly force: boolean;
  /** The run to resume; null for a new one. */
  readonly resume: string | null;
  readonly connect: ConnectArguments;
}

export interface EvalArguments extends RunArguments {
  readonly failOnError: boolean;
  readonly gates: GateArguments;
  /** The path of the JUnit report; null for none. */
  readonly junit: string | null;
  /** The path of the result as Markdown; null for none. */
  readonly markdown: string | null;
  /** The folder for the results; null for none. */
  readonly outputDir: string | null;
  /** Fields of the state that are added to each row. */
  readonly stateColumns: readonly string[];
  /** The program that plays the rollouts; null if the environment does, or workers elsewhere. */
  readonly program: AgentProgram | null;
  /** The command that resumes this run with the same options, without its `--resume` and the program. */
  readonly again: string;
}

type Line = CommandLine<keyof typeof EVAL_FLAGS>;
type PlayLine = CommandLine<keyof typeof PLAY_FLAGS | keyof typeof PLATFORM_FLAGS | "resume">;

/** Throws a CommandError with exit code 2 that names the flag. */
export function evalArguments(line: Line): EvalArguments {
  const { draft, ...run } = runArguments(line);
  const { agent, program } = agentArguments(line, draft);
  const outputDir = line.text("output-dir") ?? (line.on("save-results") ? "outputs" : null);
  return {
    ...run,
    draft: {
      ...draft,
      ...defined({ min_scored: line.number("min-scored"), answer_cache: line.on("cache") || undefined, agent }),
    },
    program,
    failOnError: line.on("fail-on-error"),
    gates: gateArguments(line),
    junit: line.text("junit") ?? null,
    markdown: line.text("markdown") ?? null,
    outputDir,
    stateColumns: stateColumns(line.text("state-columns"), outputDir),
    again: `${COMMAND} eval${line.asGiven(BESIDES_THE_REQUEST)}${program === null ? "" : ` --agent ${program.name}`}`,
  };
}

/** The arguments of a run that is like an eval. */
export function runArguments(line: Line | CommandLine<keyof typeof GENERATE_FLAGS>): RunArguments {
  const { draft, ...run } = playArguments(line);
  const asked = defined({
    num_examples: line.number("num-examples"),
    rollouts_per_example: line.number("rollouts-per-example"),
  });
  return { ...run, draft: { ...draft, ...asked } };
}

/** `policyOnly`: the bundled policy plays, whatever endpoint is given. */
export function playArguments(line: PlayLine, policyOnly = false): RunArguments {
  const [environment, ...more] = line.positionals;
  if (more.length > 0) throw usageError(`exactly one environment is required, not ${line.positionals.join(", ")}`);
  const draft = playDraft(line, environment);
  const dataset = line.text("dataset");
  const hasDataset = dataset !== undefined || draft.dataset !== undefined;
  const [force, resume] = [line.on("force"), line.text("resume") ?? null];
  const unchecked = { draft, hasDataset, force, policyOnly };
  return {
    json: line.on("json"),
    draft,
    dataset: dataset === undefined ? null : datasetArgument(dataset),
    force,
    resume,
    connect: {
      ...platformAsked(line),
      ephemeral: line.on("ephemeral"),
      port: portOf(line.text("port")),
      environment: draft.environment,
      // A resumed run has its own request.
      ...(resume === null && {
        beforeBoot: async (...given) => {
          const { checkBeforeBoot } = await import("./before-boot.ts");
          await checkBeforeBoot(unchecked, ...given);
        },
      }),
    },
  };
}

/** Flags that are not part of the request: they take effect while the run is followed, or after it. */
const BESIDES_THE_REQUEST = [
  "min-scored",
  "fail-under",
  "baseline",
  "max-drop",
  "metric",
  "junit",
  "markdown",
  "fail-on-error",
  "save-results",
  "output-dir",
  "state-columns",
  "track",
  "track-project",
] as const;

/** Reads which model plays which environment from the flags; they override the request of --file. */
function playDraft(line: PlayLine, environment: string | undefined): DraftRequest {
  const file = line.text("file");
  const draft: Record<string, unknown> = {
    ...(file === undefined ? {} : jsonObject(readText(file, "file"), "file")),
    ...defined({
      environment,
      name: line.text("name"),
      model: line.text("model"),
      max_concurrent: line.number("max-concurrent"),
      max_cost_micros: maxCostMicros(line.number("max-cost")),
      seed: line.number("seed"),
      shuffle: line.on("shuffle") || undefined,
      prompts: line.text("prompts"),
    }),
  };
  addPlace(draft, line);
  merge(draft, "environment_args", environmentArgs(line.all("env-args")));
  merge(draft, "sampling", samplingOf(line));
  const judgeKey = line.text("judge-key-var");
  merge(draft, "judges", judgeTargets(line.all("judge"), judgeKey));
  merge(draft, "limits", defined({ max_retries: line.number("max-retries") }));
  merge(draft, "metadata", line.pairs("metadata"));
  // Not parsed here: the platform parses the request and names the field of every mistake. A second parser could only
  // disagree.
  return draft as DraftRequest;
}

function maxCostMicros(dollars: number | undefined): number | undefined {
  if (dollars === undefined) return undefined;
  const micros = Math.round(dollars * 1_000_000);
  if (micros >= 1 && micros <= LIMITS.maxCostMicros) return micros;
  const most = dollarsText(LIMITS.maxCostMicros);
  throw usageError(`--max-cost: must be dollars, from $0.000001 to ${most}, not ${dollars}`, "max-cost");
}

function gateArguments(line: Line): GateArguments {
  const baseline = baselineArgument(line.all("baseline"), () => line.pairs("baseline"));
  const gates = {
    failUnder: line.number("fail-under") ?? null,
    minScored: line.number("min-scored") ?? null,
    maxDrop: line.number("max-drop") ?? null,
    metric: line.text("metric") ?? null,
    baseline,
  };
  if (gates.maxDrop !== null && baseline === null) {
    throw usageError("--max-drop: needs --baseline", "max-drop");
  }
  if (gates.maxDrop !== null && gates.maxDrop < 0) {
    throw usageError("--max-drop: must be 0 or more: 0.02 allows a drop of 0.02", "max-drop");
  }
  if (gates.metric !== null && baseline === null && gates.failUnder === null) {
    throw usageError("--metric: needs --fail-under or --baseline", "metric");
  }
  return gates;
}

function merge(draft: Record<string, unknown>, field: string, more: Record<string, unknown>): void {
  if (Object.keys(more).length > 0) draft[field] = { ...Object(draft[field]), ...more };
}

/**
 * Adds the endpoint or fleet where the model is called. A flag overrides the file, even if the file names the other
 * kind.
 */
function addPlace(draft: Record<string, unknown>, line: PlayLine): void {
  const fleet = line.text("fleet");
  const given = (["endpoint", "base-url", "api-key-var"] as const).filter((flag) => line.text(flag) !== undefined);
  if (fleet === undefined) {
    if (given.length > 0) delete draft["fleet"];
    addEndpoint(draft, line);
    return;
  }
  if (given[0] !== undefined) throw usageError(`--fleet: cannot be combined with --${given[0]}`, "fleet");
  delete draft["endpoint"];
  draft["fleet"] = fleet;
}

function addEndpoint(draft: Record<string, unknown>, line: PlayLine): void {
  const named = line.text("endpoint");
  const baseUrl = urlOf("base-url", line.text("base-url"));
  const key = variableNamedBy("api-key-var", line.text("api-key-var"));
  if (named !== undefined) {
    if (baseUrl !== undefined || key !== undefined) {
      throw usageError("--endpoint: cannot be combined with -b or -k: the endpoint has a URL and key", "endpoint");
    }
    draft["endpoint"] = named;
    return;
  }
  if (typeof draft["endpoint"] === "string") {
    if (baseUrl === undefined && key !== undefined) {
      throw usageError("--api-key-var: the endpoint of the file has its own key", "api-key-var");
    }
    if (baseUrl !== undefined) delete draft["endpoint"];
  }
  // The key of OPENAI_API_KEY is sent to a URL of the command line; to a URL from a file it is sent only with -k.
  const usual = baseUrl === undefined ? undefined : process.env["OPENAI_API_KEY"] || undefined;
  merge(draft, "endpoint", defined({ base_url: baseUrl, api_key: key ?? usual }));
}

function samplingOf(line: PlayLine): Record<string, unknown> {
  const given = line.text("sampling-args");
  return {
    ...defined({ max_tokens: line.number("max-tokens"), temperature: line.number("temperature") }),
    ...(given === undefined ? {} : jsonObject(given, "sampling-args")),
  };
}

function stateColumns(text: string | undefined, outputDir: string | null): string[] {
  if (text === undefined) return [];
  if (outputDir === null) {
    throw usageError("--state-columns: needs -s or -o", "state-columns");
  }
  return text.split(",").map((name) => name.trim());
}
