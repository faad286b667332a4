/**
 * The commands of a page: its indented blocks that begin with a program's name. The output that the page shows is the
 * first fenced block between a command and the next block.
 */
export interface DocumentedCommand {
  readonly command: string;
  /** The lines of its output; empty if the page shows none. */
  readonly shown: readonly string[];
}

const PROGRAM = /^(npm|npx|node|curl|export|cd|git|rollcall|KEY=\S*)\b/;

export function documentedCommands(page: string): DocumentedCommand[] {
  const commands: { command: string; shown: string[] }[] = [];
  let fenced: string[] | null = null;
  for (const line of page.split("\n")) {
    if (line.startsWith("```")) {
      const last = commands.at(-1);
      if (fenced !== null && last?.shown.length === 0) last.shown.push(...fenced);
      fenced = fenced === null ? [] : null;
    } else if (fenced !== null) fenced.push(line);
    else if (line.startsWith("    ")) addLine(commands, line.slice(4));
  }
  return commands;
}

/** A line that does not begin with a program's name continues the command before it, if it is indented further. */
function addLine(commands: { command: string; shown: string[] }[], line: string): void {
  const last = commands.at(-1);
  if (PROGRAM.test(line)) commands.push({ command: line, shown: [] });
  else if (last !== undefined && line.startsWith(" ")) last.command += `\n${line}`;
}
