/** The formats with one line of JSON per row, by name. prime-rl's is not among them: its rows are packed. */
import type { BatchFormat } from "../../../contract/batch-format.ts";
import { asciiBytes } from "../sample-row.ts";
import type { CreditedRow } from "./credited-row.ts";
import { neutralLine, skyrlOutput, slimeSample, tinkerDatum, trlRollout, trlSample, verlOutput } from "./lines.ts";

export type LineFormatName = Exclude<BatchFormat, "prime-rl">;

export interface LineFormat {
  /** The credit that a row must have: a row without it is left out. */
  readonly needs: "advantage" | "reward";
  /** Returns the line with its newline. */
  readonly line: (credited: CreditedRow) => Uint8Array<ArrayBuffer>;
}

const FORMATS: Readonly<Record<LineFormatName, LineFormat>> = {
  neutral: { needs: "reward", line: neutralLine },
  trl: { needs: "advantage", line: jsonLine(trlSample) },
  "trl-rollout": { needs: "reward", line: jsonLine(trlRollout) },
  tinker: { needs: "advantage", line: jsonLine(tinkerDatum) },
  slime: { needs: "reward", line: jsonLine(slimeSample) },
  verl: { needs: "reward", line: jsonLine(verlOutput) },
  skyrl: { needs: "reward", line: jsonLine(skyrlOutput) },
};

export function formatNamed(name: LineFormatName): LineFormat {
  return FORMATS[name];
}

/** The credit that rows of a format must have. */
export function creditNeeded(format: BatchFormat): LineFormat["needs"] {
  return format === "prime-rl" ? "advantage" : FORMATS[format].needs;
}

function jsonLine(of: (credited: CreditedRow) => object): LineFormat["line"] {
  return (credited) => asciiBytes(`${JSON.stringify(of(credited))}\n`);
}
