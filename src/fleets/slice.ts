/** Fleets: engines that serve one policy. Each engine is a replica. A run names a fleet instead of an endpoint. */
import type { Slice } from "../kernel/http/slice.ts";
import { fleetHooks, fleetObjects } from "./hooks.ts";
import { replicaOperations } from "./replica-routes.ts";
import { fleetOperations } from "./routes.ts";
import { fleets as fleetTable, replicas } from "./tables.ts";

export const fleets: Slice = {
  operations: [...fleetOperations, ...replicaOperations],
  hooks: { fleets: fleetHooks, objectsOfProject: fleetObjects },
  tables: {
    ofProject: [fleetTable, replicas],
    sealed: {
      replica: { table: replicas, column: replicas.sealed_key },
      replica_control: { table: replicas, column: replicas.sealed_control_key },
    },
    fleets: fleetTable,
  },
};
