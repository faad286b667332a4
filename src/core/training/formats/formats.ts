/** The formats that are a line of JSON a row, by name. prime-rl's is not: its rows are packed. */
import type { BatchFormat } from "../../../contract/batch-format.ts";
import { asciiBytes } from "../sample-row.ts";
import type { CreditedRow } from "./credited-row.ts";
import { neutralLine, skyrlOutput, slimeSample, tinkerDatum, trlRollout, trlSample, verlOutput } from "./lines.ts";

export type LineFormatName = Exclude<BatchFormat, "prime-rl">;

export interface LineFormat {
  /** Which credit a row cannot do without: one that has none is left out. */
  readonly needs: "advantage" | "reward";
  /** With the newline that ends it. */
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

/** Which credit the rows of a format cannot do without. */
export function creditNeeded(format: BatchFormat): LineFormat["needs"] {
  return format === "prime-rl" ? "advantage" : FORMATS[format].needs;
}

function jsonLine(of: (credited: CreditedRow) => object): LineFormat["line"] {
  return (credited) => asciiBytes(`${JSON.stringify(of(credited))}\n`);
}
