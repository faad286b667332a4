/**
 * The flags of the commands that make a run, named as `vf-eval`'s flags are if both have one. They are kept apart from
 * the commands' code because the help needs only the flags; the code is loaded only when the command is called.
 */
import { AgentSettings } from "../contract/agent.ts";
import { EXPORT_FORMATS } from "../contract/export.ts";
import { PromptForm } from "../contract/prompts.ts";
import { ARGS_FLAG, type Flags, PLATFORM_FLAGS } from "./command-line.ts";

/** Flags for the environment, the model and its endpoint, for a run of any kind. */
export const PLAY_FLAGS = {
  model: { short: "m", value: "NAME", help: "the model's name at its endpoint" },
  "base-url": {
    short: "b",
    value: "URL",
    help: "OpenAI-compatible endpoint, up to and including /v1; default OPENAI_BASE_URL",
  },
  "api-key-var": {
    short: "k",
    value: "VAR",
    help: "environment variable with its key; default OPENAI_API_KEY",
  },
  endpoint: { short: "e", value: "NAME", help: "a named endpoint of the platform, instead of -b" },
  fleet: { value: "NAME", help: "a fleet of the platform, instead of -b" },
  "env-args": ARGS_FLAG,
  dataset: {
    value: "FILE|ID",
    help: "task rows: a JSONL, Parquet, CSV or TSV file, or the id or name of an uploaded dataset",
  },
  "max-concurrent": { short: "c", value: "N", help: "concurrent rollouts; default 32" },
  "max-tokens": { short: "t", value: "N", help: "token limit of a reply" },
  temperature: { short: "T", value: "X", help: "sampling temperature" },
  "sampling-args": { short: "S", value: "JSON", help: "more sampling arguments; they override -t and -T" },
  prompts: {
    value: "FORM",
    choices: PromptForm.options,
    help: "messages (default); token_ids, or chat_token_ids with tools: later prompts are token ids, so that turns stay one training sample",
  },
  "max-retries": { value: "N", help: "retries of a model call; default 2" },
  "max-cost": { value: "DOLLARS", help: "limit on the total cost of the run; needs -t, and prices of its endpoints" },
  shuffle: { help: "shuffle the tasks by the seed" },
  seed: { value: "N", help: "seed of the order and of the bundled policy; default 0" },
  judge: {
    value: "NAME=MODEL@ENDPOINT",
    repeatable: true,
    help: "the model of a judge of the rubric; ENDPOINT is a name, or a URL up to and including /v1",
  },
  "judge-key-var": {
    value: "VAR",
    help: "environment variable with the key of judges given by URL; default OPENAI_API_KEY",
  },
  file: { short: "f", value: "RUN.json", help: "a run request to start from; flags override it" },
  name: { value: "TEXT", help: "a name of the run" },
  metadata: { value: "k=v", repeatable: true, help: "metadata, to find the run again" },
  force: { help: "let the bundled policy play an unknown environment" },
  ephemeral: { help: "use a temporary platform that keeps no data" },
  port: { value: "P", help: "port of a local platform; default 8787; if busy, the next free port" },
} as const satisfies Flags;

/** Flags for which run to make. */
export const RUN_FLAGS = {
  "num-examples": { short: "n", value: "N", help: "number of tasks; -1 = all; default all, or 5 if they are endless" },
  "rollouts-per-example": { short: "r", value: "N", help: "default 1" },
  ...PLAY_FLAGS,
} as const satisfies Flags;

/** Flags for which rows for training are made from a run. */
export const EXPORT_FLAGS = {
  format: {
    value: "FORMAT",
    choices: EXPORT_FORMATS,
    help: "default sft; sft has conversations, dpo has pairs, verifiers has rows of results",
  },
  "min-reward": { value: "X", help: "minimum reward of a rollout, or of the chosen one of a pair" },
  "best-of-group": { help: "only the best rollout of each task, or its best and worst" },
  dedupe: { help: "only the first of rollouts with the same text" },
} as const satisfies Flags;

/** Flags for how a policy is trained; `npm start` takes some of them too. */
export const LEARNING_FLAGS = {
  "max-steps": { value: "N", help: "optimizer steps; default: known per environment" },
  "learning-rate": { value: "L", help: "learning rate of the embedded trainer; 0 = control: nothing is learnt" },
  "eval-examples": { value: "N", help: "held-out tasks of each eval; 0 = none; default 256" },
} as const satisfies Flags;

/** Flags of the agent that plays a run. */
const AGENT_FLAGS = {
  agent: { value: "NAME", help: "an agent plays the rollouts: workers that lease rollouts of this name" },
  "agent-sampling": {
    value: "HOW",
    choices: AgentSettings.shape.sampling.unwrap().options,
    help: "keep: calls of the agent may change the run's sampling (default); override: they cannot",
  },
  "max-turns": { value: "N", help: "model calls of the agent in a rollout; default 1000" },
} as const satisfies Flags;

/** Flags for where the run is sent while it is followed. */
export const TRACK_FLAGS = {
  track: { value: "WHERE", choices: ["wandb"], help: "send the run to Weights & Biases as it goes" },
  "track-project": { value: "NAME", help: "project at Weights & Biases; default WANDB_PROJECT, or rollcall" },
} as const satisfies Flags;

export const EVAL_FLAGS = {
  ...RUN_FLAGS,
  ...AGENT_FLAGS,
  cache: {
    help: "answer a call that was answered before from the project's cache, at no cost; needs --temperature 0",
  },
  "min-scored": { value: "SHARE", help: "exit 3 unless this share of the rollouts is scored" },
  "fail-under": { value: "X", help: "exit 3 if the mean reward is less than this" },
  baseline: {
    value: "RUN|k=v",
    repeatable: true,
    help: "compare with this run, or the newest with this metadata; exit 3 if significantly worse",
  },
  "max-drop": {
    value: "D",
    help: "exit 3 if the mean dropped by more than this from --baseline, 5 if that is unclear",
  },
  metric: { value: "NAME", help: "the score that the gates check; default the reward" },
  junit: { value: "FILE", help: "write a JUnit report: a test case per task and gate" },
  markdown: { value: "FILE", help: "write the result as Markdown, for a comment or the summary of a build" },
  "fail-on-error": { help: "exit 1 if any rollout failed or has no score" },
  "save-results": { short: "s", help: "write results.jsonl and metadata.json under outputs" },
  "output-dir": { short: "o", value: "DIR", help: "write them under DIR" },
  "state-columns": {
    short: "C",
    value: "A,B",
    help: "fields of the environment's state to save with each row; needs -s or -o",
  },
  resume: {
    short: "R",
    value: "RUN|last",
    help: "continue a run: follow it, and retry what has no score; conflicting flags are refused",
  },
  ...TRACK_FLAGS,
  ...PLATFORM_FLAGS,
  timeout: { value: "S", help: "cancel the run after this many seconds; exit 1" },
} as const satisfies Flags;

export const TRAIN_FLAGS = {
  ...LEARNING_FLAGS,
  "group-size": { value: "G", help: "rollouts per task; default 8" },
  "batch-size": { value: "R", help: "rollouts per step; default 64, or the API's default for your own trainer" },
  passes: {
    value: "N",
    help: "passes of the embedded trainer over each batch, 1 to 16; default: known per environment",
  },
  "initial-weights": {
    value: "LOCATION",
    help: "with --fleet: where version 0 is, as its engines read it; each replica loads it first",
  },
  loss: { value: "NAME", help: "loss of the embedded trainer: dppo, ppo_clip, cispo or importance_sampling" },
  trainer: {
    value: "T",
    help: "embedded (default); pull: your trainer leases batches; push:URL: batches are sent to the URL",
  },
  ...PLAY_FLAGS,
  resume: { short: "R", value: "RUN", help: "continue a training run; other flags are ignored" },
  ...TRACK_FLAGS,
  ...PLATFORM_FLAGS,
  timeout: { value: "S", help: "cancel the run after this many seconds; exit 1" },
} as const satisfies Flags;

export const RESCORE_FLAGS = {
  environment: {
    value: "E",
    help: "environment with the rubric: id, id@version, or a folder; default that of the run",
  },
  "env-args": {
    short: "a",
    value: "ARGS",
    repeatable: true,
    help: "its arguments: JSON, a JSON file, or k=v; default those of the run",
  },
  judge: { value: "NAME=MODEL@ENDPOINT", repeatable: true, help: "replace the run's judge of this name" },
  "min-scored": { value: "SHARE", help: "share of the rollouts that must be scored" },
  name: { value: "TEXT", help: "a name of the new run" },
  metadata: { value: "k=v", repeatable: true, help: "replace the run's metadata" },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", help: "cancel the new run after this many seconds; exit 1" },
} as const satisfies Flags;

export const GENERATE_FLAGS = {
  out: { short: "o", value: "FILE", help: "file for the rows, one JSON object per line" },
  ...EXPORT_FLAGS,
  ...RUN_FLAGS,
  resume: { short: "R", value: "RUN_ID", help: "continue an earlier run and write its rows" },
  ...PLATFORM_FLAGS,
  timeout: { value: "S", help: "cancel the run after this many seconds; exit 1" },
} as const satisfies Flags;

export const START_FLAGS = {
  once: { help: "stop after the demo" },
  again: { help: "train again, although the demo was completed before" },
  environment: { value: "E", help: "the demo on this environment, or ./folder; default calculator" },
  ...LEARNING_FLAGS,
  seed: { value: "N", help: "seed of the demo: tasks, sampling and trainer" },
  keep: { help: "keep all data on disk; data in memory is moved there" },
  "no-demo": { help: "skip the demo" },
  port: { value: "P", help: "default 8787; if busy, the next free port" },
  timeout: { value: "S", help: "stop after this many seconds" },
} as const satisfies Flags;

export const AGENT_RUN_FLAGS = {
  name: { value: "NAME", help: "the agent: `agent.name` of the runs that it plays" },
  "max-concurrent": { short: "c", value: "N", help: "rollouts at the same time, 1 to 256; default 8" },
  cwd: { value: "DIR", help: "where the program runs; default a fresh folder for each rollout" },
  worker: { value: "ID", help: "name of this worker; default the host and the process id" },
  run: { value: "RUN", help: "end when this run has ended" },
  once: { help: "end when there was no rollout for 30 seconds" },
  "show-output": { help: "print what the programs print, on stderr" },
  ...PLATFORM_FLAGS,
  json: { help: "one JSON object per line on stdout: each rollout that was played" },
  timeout: { value: "S", help: "stop after this many seconds, exit 1" },
} as const satisfies Flags;
