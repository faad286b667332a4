/** Reads secrets from the user: typed on a terminal that does not show them, or from stdin. Never from argv. */
import { text } from "node:stream/consumers";
import { interruption, usageError } from "./exit.ts";
import { keyOf } from "./which-platform.ts";

/** The parts of a terminal's stdin that are used. */
export interface TypedInput {
  setRawMode(raw: boolean): unknown;
  on(event: "data", listener: (part: Buffer | string) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

const CTRL_C = "\x03";
/** Also Ctrl-D and Enter. */
const ENDS = [CTRL_C, "\x04", "\r", "\n"];
const RUB_OUT = ["\x7f", "\b"];

/** `flag` is the flag that selects stdin; `what` names the secret: "key". */
export async function shownSecret(what: string, flag: string, fromStdin: boolean): Promise<string> {
  if (!fromStdin && !process.stdin.isTTY) {
    throw usageError(`--${flag}: no terminal to ask for the ${what}; send it on stdin with --${flag}`, flag);
  }
  const said = fromStdin ? await text(process.stdin) : await askHidden(`The ${what}: `, process.stdin, process.stderr);
  const secret = said.trim();
  if (secret === "") throw usageError(`no ${what} was entered`, flag);
  return keyOf(secret, `the ${what}`);
}

/** Reads a typed line without showing it. Throws an interruption on Ctrl-C, and if the terminal is closed. */
export async function askHidden(
  question: string,
  input: TypedInput,
  output: { write(text: string): unknown },
): Promise<string> {
  output.write(question);
  input.setRawMode(true);
  try {
    return await new Promise<string>((resolve, reject) => {
      let line = "";
      input.on("end", () => reject(interruption()));
      input.on("data", (part) => {
        line += String(part);
        const [typed, end] = readTyped(line);
        if (end === CTRL_C) reject(interruption());
        else if (end !== null) resolve(typed);
      });
      input.resume();
    });
  } finally {
    input.setRawMode(false);
    input.pause();
    output.write("\n");
  }
}

/** The text of these characters, and the character that ended the line; null if the line has not ended. */
function readTyped(letters: string): [string, string | null] {
  let typed = "";
  for (const letter of letters) {
    if (ENDS.includes(letter)) return [typed, letter];
    typed = RUB_OUT.includes(letter) ? typed.slice(0, -1) : typed + letter;
  }
  return [typed, null];
}
