/** `rollcall rollout show`. */
import { readCommandLine } from "../command-line.ts";
import { ROLLOUT_SHOW } from "../commands.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { transcript } from "../terminal/transcript.ts";

export function rolloutShowCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ROLLOUT_SHOW, argv);
  const id = line.one("a rollout");
  return onPlatform(line, async ({ client, signal, term, answer }) => {
    const rollout = await client.getRollout(id, { signal });
    answer(rollout, () => transcript(rollout, term));
    return EXIT.good;
  });
}
