/** Reads prices from flags: in dollars, both or none. */
import type { CommandLine } from "../command-line.ts";
import { usageError } from "../exit.ts";

type PriceFlag = "input-price" | "output-price";

const MICROS_PER_DOLLAR = 1e6;

/** Undefined if neither is given. */
export function pricesOf(line: CommandLine<PriceFlag>) {
  const input = microsOf(line, "input-price");
  const output = microsOf(line, "output-price");
  if (input === undefined && output === undefined) return undefined;
  if (input === undefined || output === undefined) {
    const missing = input === undefined ? "input-price" : "output-price";
    throw usageError(`--${missing}: is required: set both prices`, missing);
  }
  return { input_per_mtok_micros: input, output_per_mtok_micros: output };
}

function microsOf(line: CommandLine<PriceFlag>, flag: PriceFlag): number | undefined {
  const dollars = line.number(flag);
  if (dollars === undefined) return undefined;
  if (dollars < 0) throw usageError(`--${flag}: must not be negative`, flag);
  return Math.round(dollars * MICROS_PER_DOLLAR);
}
