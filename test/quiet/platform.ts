/** The same for platforms that a test boots in its own process: these print the output of their workerd. */
import { afterAll, beforeAll } from "vitest";
import quiet from "./workerd.ts";

let undo: () => void;
beforeAll(() => {
  undo = quiet();
});
afterAll(() => undo());
