/** What a program gets for its rollout: a folder with the task, and environment variables with the address and the task. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeasedRollout } from "../../agents/wire.ts";
import { type Message, textOf } from "../../contract/messages.ts";

/** Linux has a limit of 128 KiB for a variable and of 2 MiB for all together. */
const LONGEST_VARIABLE = 100 * 1024;
/** Not for the program: the key of this command, and what would be sent to the rollout's address in addition to its key. */
const WITHHELD = [
  "ROLLCALL_API_KEY",
  "ANTHROPIC_AUTH_TOKEN",
  "ANTHROPIC_CUSTOM_HEADERS",
  "OPENAI_CUSTOM_HEADERS",
  "OPENAI_ORG_ID",
  "OPENAI_PROJECT_ID",
];

const TASK = "task.json";
const PROMPT = "prompt.json";
const RESULT = "result.json";
/** The names of the files in the folder of a rollout. */
export const ROLLOUT_FILES: readonly string[] = [TASK, PROMPT, RESULT];

export type Variables = Readonly<Record<string, string | undefined>>;

export interface RolloutFolder {
  readonly path: string;
  /** Where the program may write how the rollout ended. */
  readonly result: string;
  /** Throws if something in it cannot be removed. */
  remove(): Promise<void>;
}

/** A fresh folder, for this user only, with the row and the prompt. */
export async function makeRolloutFolder({ task, prompt }: LeasedRollout): Promise<RolloutFolder> {
  const path = await mkdtemp(join(tmpdir(), "rollcall-agent-"));
  await writeFile(join(path, TASK), JSON.stringify(task));
  await writeFile(join(path, PROMPT), JSON.stringify(prompt));
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 });
  return { path, result: join(path, RESULT), remove };
}

/** The variables of the program: those of this process, with the rollout's. */
export function variablesOf(leased: LeasedRollout, folder: RolloutFolder, own: Variables): Variables {
  const { base_url, anthropic_base_url, key, model, rollout_id, run_id, task, prompt } = leased;
  const rest = Object.entries(own).filter(([name]) => !WITHHELD.includes(name));
  const texts = { ROLLCALL_TASK: JSON.stringify(task), ROLLCALL_PROMPT: promptText(prompt) };
  const variables = Object.entries(texts).filter(([, text]) => isVariable(text));
  return {
    ...Object.fromEntries(rest),
    // The second name is that of older clients, such as LangChain's.
    ...{ OPENAI_BASE_URL: base_url, OPENAI_API_BASE: base_url, OPENAI_API_KEY: key, OPENAI_MODEL: model },
    ...{ ANTHROPIC_BASE_URL: anthropic_base_url, ANTHROPIC_API_KEY: key },
    ...{ ROLLCALL_ROLLOUT_ID: rollout_id, ROLLCALL_RUN_ID: run_id, ROLLCALL_MODEL: model },
    ...{ ROLLCALL_TASK_FILE: join(folder.path, TASK), ROLLCALL_PROMPT_FILE: join(folder.path, PROMPT) },
    ROLLCALL_RESULT_FILE: folder.result,
    ...Object.fromEntries(variables),
  };
}

/** The texts of the messages, with an empty line between two. */
function promptText(prompt: LeasedRollout["prompt"]): string {
  // The platform has made these messages of the row.
  return prompt.map((message) => textOf(message as Pick<Message, "content" | "role">)).join("\n\n");
}

function isVariable(text: string): boolean {
  return Buffer.byteLength(text) <= LONGEST_VARIABLE && !text.includes("\0");
}
