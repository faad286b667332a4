/** The same of fleets and their replicas. */
import { FleetUpdate } from "../../src/contract/fleet.ts";
import * as fleets from "../../src/db/fleets.ts";
import type { Case } from "./cases.ts";

const FIRST = { after: null, limit: 10, order: "asc" } as const;
const at = { created_at: 2000, updated_at: 2000 };

export function fleetRow(id: string, name: string): fleets.NewFleet {
  const update = FleetUpdate.parse({});
  return { id, name, update, prices: null, location_hint: null, ...at, deleted_at: null };
}

export function replicaRow(id: string, fleet_id: string, sealed: string): fleets.NewReplica {
  return {
    ...{ id, fleet_id, name: "name", base_url: "https://gpu.example/v1", control_url: null },
    ...{ sealed_key: sealed, api_key_last4: "9f2c", sealed_control_key: sealed, max_concurrent: 4, draining: false },
    ...{ capabilities: null, ...at },
  };
}

export const FLEET_CASES: Readonly<Record<string, Case>> = {
  getFleet: (d1, scope, mark) => fleets.getFleet(d1, scope, `fl_${mark}`),
  findFleet: async (d1, scope, mark) => [
    await fleets.findFleet(d1, scope, `fl_${mark}`),
    await fleets.findFleet(d1, scope, "name"),
  ],
  listFleets: (d1, scope) => fleets.listFleets(d1, scope, FIRST),
  replicasOf: (d1, scope, mark) => fleets.replicasOf(d1, scope, `fl_${mark}`),
  replicasOfAll: (d1, scope, mark) => fleets.replicasOfAll(d1, scope, [`fl_${mark}`]),
  getReplica: (d1, scope, mark) => fleets.getReplica(d1, scope, `rp_${mark}`),
  findReplica: (d1, scope, mark) => fleets.findReplica(d1, scope, `fl_${mark}`, "name"),
  insertFleet: (d1, scope) => {
    const fleet = fleetRow(crypto.randomUUID(), "new");
    return fleets.insertFleet(d1, scope, fleet, [replicaRow(crypto.randomUUID(), fleet.id, "sealed")], null);
  },
  insertReplica: (d1, scope, mark) =>
    fleets.insertReplica(d1, scope, { ...replicaRow(crypto.randomUUID(), `fl_${mark}`, "sealed"), name: "new" }, null),
  updateFleet: (d1, scope, mark) => fleets.updateFleet(d1, scope, `fl_${mark}`, { prices: null, updated_at: 3000 }),
  updateReplica: (d1, scope, mark) => {
    const before = {
      ...replicaRow(`rp_${mark}`, `fl_${mark}`, mark),
      org_id: scope.orgId,
      project_id: scope.projectId,
    };
    return fleets.updateReplica(d1, scope, before, { draining: true });
  },
  deleteReplica: (d1, scope, mark) => fleets.deleteReplica(d1, scope, `rp_${mark}`),
  deleteFleet: (d1, scope, mark) => fleets.deleteFleet(d1, scope, `fl_${mark}`, 3000),
};
