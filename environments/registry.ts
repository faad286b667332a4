/** The environments a deployment bundles. A package used from disk or from npm needs no line here. */
import type { AnyEnvironment, Need } from "rollcall";
import type * as z from "zod";
import { loadEnvironment as calculator } from "./calculator/environment.ts";
import { loadEnvironment as gridWalk } from "./grid-walk/environment.ts";
import { loadEnvironment as gsm8k } from "./gsm8k/environment.ts";
import { loadEnvironment as guessNumber } from "./guess-number/environment.ts";
import { loadEnvironment as reverseText } from "./reverse-text/environment.ts";

export interface RegisteredEnvironment {
  readonly id: string;
  /** As in the package.json beside it. */
  readonly version: string;
  readonly args: z.ZodObject;
  readonly needs: readonly Need[];
  /** Rejects with a ZodError when the arguments do not fit `args`. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

export const ENVIRONMENTS: readonly RegisteredEnvironment[] = [
  { id: "calculator", version: "1.1.0", ...calculator },
  { id: "grid-walk", version: "1.0.0", ...gridWalk },
  { id: "gsm8k", version: "1.0.0", ...gsm8k },
  { id: "guess-number", version: "1.1.0", ...guessNumber },
  { id: "reverse-text", version: "1.0.0", ...reverseText },
];
