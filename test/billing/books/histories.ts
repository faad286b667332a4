/** How many times the random histories of a test run are played: 1, or as many as `npm run histories` asks for. */
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    histories: number;
  }
}

export const TIMES = inject("histories");
