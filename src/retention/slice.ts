/** Deletions by jobs, and the daily reconciliation by a project's retention. */
import type { Slice } from "../kernel/http/slice.ts";
import { deletionOperations } from "./routes.ts";
import { projectObject } from "./rpc.ts";

export const retention: Slice = {
  operations: deletionOperations,
  hooks: { onProjectChanged: (env, scope) => projectObject(env, scope).note(scope) },
};
