/**
 * The output of a command. With --json, stdout gets one object at the end and everything else goes to stderr.
 *
 * Invariants: a drawing is on stderr, below all other output. It is erased by the number of lines that it takes at the
 * current width. The cursor is hidden while there is a drawing, and is shown again however the process ends.
 */
import { displayWidth } from "./text.ts";

export interface Terminal {
  /** Results, and how to continue. */
  print(text: string): void;
  /** One line of progress. */
  log(line: string): void;
  /** Replaces the last drawing, and draws again when the window changes; does nothing without a terminal. */
  redraw(draw: Drawing): void;
  /** Keeps the last drawing: later output goes below it. */
  settle(): void;
  /** Whether `redraw` shows anything. */
  readonly live: boolean;
  /** Whether `print` may use colour. */
  readonly colour: boolean;
  /** The width of the output of `print`, in columns. */
  readonly width: number;
  /** The columns that a table may take there; unlimited without a terminal. */
  readonly room: number;
}

/** Returns at most `rows` lines, none wider than `columns`. */
export type Drawing = (size: {
  readonly columns: number;
  readonly rows: number;
  readonly colour: boolean;
}) => readonly string[];

/** The parts of a stream that are used. */
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
    // A terminal whose width is unknown reports 0.
    width: (out.isTTY && out.columns) || USUAL.columns,
    room: (out.isTTY && out.columns) || Number.POSITIVE_INFINITY,
    print: (text) => write(out, text),
    log: (line) => write(stderr, line),
    redraw: (draw) => {
      if (live) screen.draw(draw);
    },
    settle: () => screen.settle(),
  };
}

/** The current drawing of a terminal. */
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

  /** If the window was made narrower, it has wrapped the drawn lines. */
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

/** True if the reader of the output, such as `head`, has gone. */
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

/** Paints text in a terminal's colours. Words or shapes carry the same information. */
export type Paint = (style: Style, text: string) => string;

/** Returns text unchanged if there are no colours. */
export function painter(colour: boolean): Paint {
  return (style, text) => {
    return colour && text !== "" ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
  };
}
