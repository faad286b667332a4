/** How many random histories a test run plays: 1, or the number given to `npm run histories`. */
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    histories: number;
  }
}

export const TIMES = inject("histories");
