/**
 * `rollcall completion`: a script for a shell, made from the table of commands. The ids of environments are asked for
 * when they are needed, of a platform that runs; none is started for them, and a silent one is not waited for.
 */
import { readReadyFile, stateDirectory } from "../../local/state-directory.ts";
import { RollcallClient } from "../../sdk/client.ts";
import { readCommandLine } from "../command-line.ts";
import { COMMANDS, COMPLETION } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { bashScript, fishScript, zshScript } from "./completion-scripts.ts";

const SCRIPTS: Readonly<Record<string, () => string>> = {
  bash: () => bashScript(COMMANDS),
  zsh: () => zshScript(COMMANDS),
  fish: () => fishScript(COMMANDS),
};
const ANSWERS_WITHIN_MS = 1000;

export async function completionCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(COMPLETION, argv);
  if (line.on("environments")) {
    const ids = await environmentIds();
    process.stdout.write(ids.map((id) => `${id}\n`).join(""));
    return EXIT.good;
  }
  const shell = line.one("a shell: bash, zsh or fish");
  const script = SCRIPTS[shell];
  if (script === undefined) throw usageError(`no script for ${shell}: there are bash, zsh and fish`);
  process.stdout.write(script());
  return EXIT.good;
}

/** None where no platform answers: a shell that completes has nobody to tell. */
async function environmentIds(): Promise<string[]> {
  const platform = platformAtHand();
  if (platform === null) return [];
  const client = new RollcallClient(platform);
  const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
  const environments = await client.environments({ signal }).catch(() => []);
  return environments.map(({ id }) => id);
}

function platformAtHand(): { baseUrl: string; apiKey: string } | null {
  const { ROLLCALL_URL: baseUrl, ROLLCALL_API_KEY: apiKey } = process.env;
  if (baseUrl && apiKey) return { baseUrl, apiKey };
  const running = readReadyFile(stateDirectory(process.env));
  return running === null ? null : { baseUrl: running.url, apiKey: running.key };
}
