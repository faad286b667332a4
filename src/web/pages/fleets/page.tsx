/** Fleets of engines that serve one policy, and a form that creates one. */
import { UPDATE_MODES } from "../../../contract/fleet.ts";
import type { FleetView } from "../../../fleets/wire.ts";
import { api } from "../../client.ts";
import type { Column } from "../../components/data-table.tsx";
import { Field, TextField, textOf } from "../../components/form.tsx";
import { countText } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const COLUMNS: readonly Column<FleetView>[] = [
  { id: "name", header: "Fleet", cell: ({ name }) => <Shown text={name} /> },
  { id: "mode", header: "Updated by", width: 18, cell: ({ update }) => update.mode },
  {
    id: "replicas",
    header: "Replicas ready",
    width: 16,
    numeric: true,
    cell: ({ replicas }) => `${replicas.filter(({ state }) => state === "ready").length} of ${replicas.length}`,
  },
  { id: "at-once", header: "At once", width: 12, numeric: true, cell: (fleet) => countText(fleet.max_concurrent) },
  {
    id: "weights",
    header: "Weights",
    cell: ({ weights }) => (weights === null ? "of no training run" : `version ${weights.version}`),
  },
  { id: "updated", header: "Changed", width: 14, cell: ({ updated_at }) => <Ago at={updated_at} /> },
];

export function Page() {
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="fleet"
          name="Create a fleet"
          submit="Create"
          permission="endpoints:write"
          act={createFleet}
          fields={["name", "update"]}
        >
          <TextField name="name" label="Name" required />
          <Field name="update" label="How its engines get new weights">
            {(control) => (
              <select {...control} defaultValue="reported">
                {UPDATE_MODES.map((mode) => (
                  <option key={mode}>{mode}</option>
                ))}
              </select>
            )}
          </Field>
        </CreateResource>
      }
      title="Fleets"
      noun="fleet"
      list={(query, options) => api.fleets.list(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/fleets"
      empty={<p>No fleets yet.</p>}
    />
  );
}

function createFleet(fields: FormData): Promise<FleetView> {
  const mode = UPDATE_MODES.find((one) => one === textOf(fields, "update"));
  return api.fleets.create({ name: textOf(fields, "name") ?? "", ...(mode !== undefined && { update: { mode } }) });
}
