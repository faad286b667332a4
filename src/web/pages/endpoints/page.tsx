/** The servers that runs call, and a form that adds one. */
import type { EndpointView } from "../../../contract/endpoint.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { numberOf, TextField, textOf } from "../../components/form.tsx";
import { countText, NOTHING } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const COLUMNS: readonly Column<EndpointView>[] = [
  { id: "name", header: "Endpoint", cell: ({ name }) => <Shown text={name} /> },
  { id: "url", header: "Address", cell: ({ base_url }) => <Shown text={base_url} /> },
  { id: "key", header: "Key", width: 10, cell: ({ api_key_last4 }) => (api_key_last4 ? `…${api_key_last4}` : "none") },
  {
    id: "limit",
    header: "At once",
    width: 10,
    numeric: true,
    cell: ({ max_concurrent }) => (max_concurrent === null ? NOTHING : countText(max_concurrent)),
  },
  { id: "probe", header: "Probe", width: 16, cell: ({ capabilities }) => <Probed error={capabilities?.error} /> },
  { id: "updated", header: "Changed", width: 14, cell: ({ updated_at }) => <Ago at={updated_at} /> },
];

function Probed({ error }: { readonly error: string | null | undefined }) {
  if (error === undefined) return "never";
  return error === null ? <Badge state="answered" tone="good" /> : <Badge state="failed" />;
}

export function Page() {
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="endpoint"
          name="Add an endpoint"
          submit="Add"
          permission="endpoints:write"
          act={createEndpoint}
          fields={["name", "base_url", "api_key", "max_concurrent", "model"]}
        >
          <TextField name="name" label="Name" required />
          <TextField name="base_url" label="Address" type="url" required placeholder="https://gpu.example/v1" />
          <TextField name="api_key" label="Key" type="password" help="Stored encrypted; cannot be read back." />
          <TextField
            name="max_concurrent"
            label="Concurrent rollouts"
            type="number"
            help="Of all runs on it. Empty: each run's own limit."
          />
          <TextField name="model" label="Model to probe" help="Empty: the first that it lists." />
        </CreateResource>
      }
      title="Endpoints"
      noun="endpoint"
      list={(query, options) => api.endpoints.list(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/endpoints"
      empty={<p>No endpoints yet. A run can also define its own endpoint.</p>}
    />
  );
}

function createEndpoint(fields: FormData): Promise<EndpointView> {
  return api.endpoints.create({
    name: textOf(fields, "name") ?? "",
    base_url: textOf(fields, "base_url") ?? "",
    api_key: textOf(fields, "api_key"),
    max_concurrent: numberOf(fields, "max_concurrent") ?? null,
    model: textOf(fields, "model"),
  });
}
