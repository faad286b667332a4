/** `rollcall agent run`: plays rollouts with any program. The code behind it is loaded when it is called. */
import { command, PLATFORM_FLAGS } from "../command-line.ts";

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
} as const;

const RUN = command({
  name: "agent run",
  program: "-- COMMAND [ARG…]",
  help: "play the rollouts of an agent with a program",
  more: `The command leases rollouts and starts the program once for each. The variables OPENAI_BASE_URL, OPENAI_API_KEY,
ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY are the rollout's own; ROLLCALL_PROMPT, ROLLCALL_TASK and ROLLCALL_TASK_FILE
have its task. Exit code 0 ends the rollout with the JSON in ROLLCALL_RESULT_FILE, or with the program's output as the
answer; any other code is an error. Words of COMMAND that are files here become absolute paths, unless --cwd is given.`,
  flags: AGENT_RUN_FLAGS,
  run: async (line) => (await import("../agent/run.ts")).agentRunCommand(line),
});

export const AGENT_COMMANDS = [RUN] as const;
