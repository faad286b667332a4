/** Every kind of vector, with its driver. */
import type { Driver } from "./driver.ts";
import { MESSAGES } from "./drivers/messages.ts";
import { NUMBERS } from "./drivers/numbers.ts";
import { PARSERS } from "./drivers/parsers.ts";
import { ROLLOUTS } from "./drivers/rollouts.ts";
import { RUBRICS } from "./drivers/rubrics.ts";

export const DRIVERS: ReadonlyMap<string, Driver> = new Map(
  Object.entries({ ...PARSERS, ...NUMBERS, ...MESSAGES, ...ROLLOUTS, ...RUBRICS }),
);
