/** Logs the output of a program line by line, each with its rollout, made safe for a terminal. */
import { StringDecoder } from "node:string_decoder";
import { stripVTControlCharacters } from "node:util";
import type { LeasedRollout } from "../../agents/wire.ts";
import { safeLine } from "../terminal/text.ts";

/** A longer line is logged in pieces. */
const LONGEST_LINE = 4096;

export class OutputLines {
  readonly #leased: LeasedRollout;
  readonly #log: (line: string) => void;
  readonly #streams = {
    stdout: { decoder: new StringDecoder("utf8"), rest: "" },
    stderr: { decoder: new StringDecoder("utf8"), rest: "" },
  };

  constructor(leased: LeasedRollout, log: (line: string) => void) {
    this.#leased = leased;
    this.#log = log;
  }

  add(name: "stdout" | "stderr", part: Buffer): void {
    const stream = this.#streams[name];
    const lines = (stream.rest + stream.decoder.write(part)).split("\n");
    stream.rest = lines.pop() ?? "";
    for (const line of lines) this.#print(line);
    while (stream.rest.length > LONGEST_LINE) {
      this.#print(stream.rest.slice(0, LONGEST_LINE));
      stream.rest = stream.rest.slice(LONGEST_LINE);
    }
  }

  /** Logs a last line without a line break. */
  end(): void {
    for (const { rest } of Object.values(this.#streams)) if (rest !== "") this.#print(rest);
  }

  #print(line: string): void {
    const { rollout_id, key } = this.#leased;
    const text = stripVTControlCharacters(line.replaceAll(key, "[key]")).replace(/\r$/, "");
    this.#log(`${rollout_id} | ${safeLine(text)}`);
  }
}
