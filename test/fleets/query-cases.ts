/** Query cases for fleets and their replicas. */
import * as fleets from "../../src/fleets/queries.ts";
import type { Case } from "../kernel/db/cases.ts";
import { fleetRow, replicaRow } from "./rows.ts";

const FIRST = { after: null, limit: 10, order: "asc" } as const;
const named = (name: string) => ({ ...fleetRow(), name });

export const FLEET_CASES: Readonly<Record<string, Case>> = {
  getFleet: (d1, scope, mark) => fleets.getFleet(d1, scope, `fl_${mark}`),
  findFleet: async (d1, scope, mark) => [
    await fleets.findFleet(d1, scope, `fl_${mark}`),
    await fleets.findFleet(d1, scope, "name"),
  ],
  listFleets: (d1, scope) => fleets.listFleets(d1, scope, FIRST),
  fleetsOfProject: (d1, scope) => fleets.fleetsOfProject(d1, scope, 10),
  replicasOf: (d1, scope, mark) => fleets.replicasOf(d1, scope, `fl_${mark}`),
  replicasOfAll: (d1, scope, mark) => fleets.replicasOfAll(d1, scope, [`fl_${mark}`]),
  getReplica: (d1, scope, mark) => fleets.getReplica(d1, scope, `rp_${mark}`),
  findReplica: (d1, scope, mark) => fleets.findReplica(d1, scope, `fl_${mark}`, "gpu-0"),
  insertFleet: (d1, scope) => {
    const fleet = named("new");
    return fleets.insertFleet(d1, scope, fleet, [replicaRow(fleet.id)], null);
  },
  insertReplica: (d1, scope, mark) => fleets.insertReplica(d1, scope, replicaRow(`fl_${mark}`, { name: "new" }), null),
  updateFleet: (d1, scope, mark) => fleets.updateFleet(d1, scope, `fl_${mark}`, { prices: null, updated_at: 3000 }),
  updateReplica: (d1, scope, mark) => {
    const row = replicaRow(`fl_${mark}`, { id: `rp_${mark}`, sealed_key: mark, sealed_control_key: mark });
    const before = { ...row, org_id: scope.orgId, project_id: scope.projectId };
    return fleets.updateReplica(d1, scope, before, { draining: true });
  },
  deleteReplica: (d1, scope, mark) => fleets.deleteReplica(d1, scope, `rp_${mark}`),
  runsOnFleet: (d1, scope, mark) => fleets.runsOnFleet(d1, scope, `fl_${mark}`),
  deleteFleet: (d1, scope, mark) => fleets.deleteFleet(d1, scope, `fl_${mark}`, 3000),
};
