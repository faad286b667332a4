/** Deletions by jobs, and the daily sweep by how long a project keeps what is made in it. */
import type { Slice } from "../kernel/http/slice.ts";
import { deletionOperations } from "./routes.ts";
import { projectObject } from "./rpc.ts";

export const retention: Slice = {
  operations: deletionOperations,
  hooks: { onProjectChanged: (env, scope) => projectObject(env, scope).note(scope) },
};
