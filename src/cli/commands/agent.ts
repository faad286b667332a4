/** `rollcall agent run`: plays rollouts with any program. The code behind it is loaded when it is called. */
import { command } from "../command-line.ts";
import { AGENT_RUN_FLAGS } from "../run-flags.ts";

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
