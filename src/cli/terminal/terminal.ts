/**
 * Where a command writes. With --json, stdout gets one object at the end and everything else goes to stderr.
 *
 * Invariants. A drawing stands on stderr, below everything else that was written, and is wiped by the lines it takes
 * at the width of now. While one stands the cursor is hidden; it comes back however the process ends.
 */
import { displayWidth } from "./text.ts";

export interface Terminal {
  /** For the person: results and how to go on. */
  print(text: string): void;
  /** What happens meanwhile, one line. */
  say(line: string): void;
  /** Draws in place of the last drawing, and again when the window changes; does nothing without a terminal. */
  redraw(draw: Drawing): void;
  /** Leaves the last drawing standing: what is written next goes below it. */
  settle(): void;
  /** Whether `redraw` shows anything. */
  readonly live: boolean;
  /** Whether `print` may use colour. */
  readonly colour: boolean;
  /** Columns of what `print` writes to. */
  readonly width: number;
  /** Columns a table may take there: no limit but that of a terminal. */
  readonly room: number;
}

/** Lines no wider than `columns`, at most `rows` of them. */
export type Drawing = (size: {
  readonly columns: number;
  readonly rows: number;
  readonly colour: boolean;
}) => readonly string[];

/** What a terminal needs of a stream. */
export interface Output {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
  on(event: "resize", listener: () => void): unknown;
}

interface Surroundings {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  on(event: "exit", listener: () => void): unknown;
}

const USUAL = { columns: 80, rows: 24 };
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";

export function terminal(json: boolean, around: Surroundings = process): Terminal {
  const { stderr } = around;
  const out = json ? stderr : around.stdout;
  const plain = Boolean(around.env["NO_COLOR"]) || around.env["TERM"] === "dumb";
  const live = stderr.isTTY === true && around.env["TERM"] !== "dumb";
  const screen = new Screen(stderr, !plain);
  if (live) {
    stderr.on("resize", () => screen.drawAgain());
    around.on("exit", () => screen.settle());
  }
  const write = (stream: Output, text: string) => {
    screen.wipe();
    stream.write(`${text}\n`);
    screen.drawAgain();
  };
  return {
    live,
    colour: out.isTTY === true && !plain,
    // A terminal that does not know its width says 0.
    width: (out.isTTY && out.columns) || USUAL.columns,
    room: (out.isTTY && out.columns) || Number.POSITIVE_INFINITY,
    print: (text) => write(out, text),
    say: (line) => write(stderr, line),
    redraw: (draw) => {
      if (live) screen.draw(draw);
    },
    settle: () => screen.settle(),
  };
}

/** The one drawing of a terminal. */
class Screen {
  readonly #output: Output;
  readonly #colour: boolean;
  #draw: Drawing | null = null;
  #drawn: readonly string[] = [];
  #hidden = false;

  constructor(output: Output, colour: boolean) {
    this.#output = output;
    this.#colour = colour;
  }

  draw(draw: Drawing): void {
    this.#draw = draw;
    this.drawAgain();
  }

  drawAgain(): void {
    if (this.#draw === null) return;
    const rows = this.#output.rows || USUAL.rows;
    // The last column and the last line stay free: a line that fills either would scroll or wrap.
    const size = { columns: this.#columns() - 1, rows: rows - 1, colour: this.#colour };
    const lines = this.#draw(size);
    const start = this.#hidden ? "" : HIDE_CURSOR;
    this.#hidden = true;
    this.#output.write(`${start}${this.#wiping()}${lines.map((line) => `${line}\n`).join("")}`);
    this.#drawn = lines;
  }

  wipe(): void {
    const wiping = this.#wiping();
    if (wiping !== "") this.#output.write(wiping);
    this.#drawn = [];
  }

  settle(): void {
    this.#draw = null;
    this.#drawn = [];
    if (this.#hidden) this.#output.write(SHOW_CURSOR);
    this.#hidden = false;
  }

  /** A window made narrower has wrapped the lines that stand. */
  #wiping(): string {
    const columns = this.#columns();
    const taken = this.#drawn.map((line) => Math.max(1, Math.ceil(displayWidth(line) / columns)));
    const lines = taken.reduce((total, count) => total + count, 0);
    return lines === 0 ? "" : `\x1b[${lines}A\x1b[0J`;
  }

  #columns(): number {
    return this.#output.columns || USUAL.columns;
  }
}

/** Whoever read the other end, such as `head`, has gone. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}

/** The one object of --json. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const CODES = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  grey: 90,
} as const;

export type Style = keyof typeof CODES;

/** Colours of a terminal. What they say is said in words or shapes too. */
export type Paint = (style: Style, text: string) => string;

/** Leaves text as it is where there are no colours. */
export function painter(colour: boolean): Paint {
  return (style, text) => {
    return colour && text !== "" ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
  };
}
