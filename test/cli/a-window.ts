import type { Output } from "../../src/cli/terminal/terminal.ts";

/** A stream that keeps what was written, and a window somebody drags. */
export class Window implements Output {
  readonly isTTY: boolean;
  columns: number;
  rows = 24;
  text = "";
  readonly #listeners: (() => void)[] = [];

  constructor(isTTY: boolean, columns = 60) {
    this.isTTY = isTTY;
    this.columns = columns;
  }

  write(text: string): void {
    this.text += text;
  }

  on(_event: "resize", listener: () => void): void {
    this.#listeners.push(listener);
  }

  resize(columns: number): void {
    this.columns = columns;
    for (const listener of this.#listeners) listener();
  }

  /** What was written since the last look. */
  taken(): string {
    const { text } = this;
    this.text = "";
    return text;
  }
}
