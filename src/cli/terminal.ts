/** Where a command writes. With --json, stdout gets one object at the end and everything else goes to stderr. */

export interface Terminal {
  /** For the person: results and how to go on. */
  print(text: string): void;
  /** What happens meanwhile, one line. */
  say(line: string): void;
  /** Redraws the lines of the last call in place; does nothing without a terminal. */
  redraw(lines: readonly string[]): void;
  /** Whether `redraw` shows anything. */
  readonly live: boolean;
}

export function terminal(json: boolean): Terminal {
  const live = process.stderr.isTTY === true;
  const screen = { lines: 0 };
  // The drawing stands on stderr; whatever else is written has to come above it.
  const clear = () => {
    if (screen.lines > 0) process.stderr.write(`\x1b[${screen.lines}A\x1b[0J`);
    screen.lines = 0;
  };
  const write = (stream: NodeJS.WriteStream, text: string) => {
    clear();
    stream.write(`${text}\n`);
  };
  return {
    live,
    print: (text) => write(json ? process.stderr : process.stdout, text),
    say: (line) => write(process.stderr, line),
    redraw(lines) {
      if (!live) return;
      clear();
      // A terminal that does not know its width says 0.
      const width = process.stderr.columns || 80;
      // A line that wraps would count as two when it is cleared.
      process.stderr.write(lines.map((line) => `${line.slice(0, width - 1)}\n`).join(""));
      screen.lines = lines.length;
    },
  };
}

/** The one object of --json. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
