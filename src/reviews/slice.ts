/** Reviews of rollouts by people. */
import type { Slice } from "../kernel/http/slice.ts";
import { reviewHooks } from "./hooks.ts";
import { reviewOperations } from "./routes.ts";
import { reviews as table } from "./tables.ts";

export const reviews: Slice = {
  operations: reviewOperations,
  hooks: { reviews: reviewHooks },
  tables: { ofProject: [table], ofRun: [table] },
};
