import type { Output } from "../../src/cli/terminal/terminal.ts";

/** A stream that keeps its output, and a window that can be resized. */
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

  /** The output since the last call. */
  taken(): string {
    const { text } = this;
    this.text = "";
    return text;
  }
}
