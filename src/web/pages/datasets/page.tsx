/** Uploaded datasets, and a form that uploads another. */
import type { DatasetView } from "../../../contract/uploaded-dataset.ts";
import { api } from "../../client.ts";
import type { Column } from "../../components/data-table.tsx";
import { Field, TextField, textOf } from "../../components/form.tsx";
import { bytesText, countText } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const COLUMNS: readonly Column<DatasetView>[] = [
  { id: "name", header: "Dataset", cell: ({ id, name }) => <Shown text={name ?? id} /> },
  { id: "rows", header: "Rows", width: 14, numeric: true, cell: ({ rows }) => countText(rows) },
  { id: "bytes", header: "Size", width: 14, numeric: true, cell: ({ bytes }) => bytesText(bytes) },
  { id: "environment", header: "Checked for", cell: ({ environment }) => environment?.id ?? "no environment" },
  { id: "created", header: "Uploaded", width: 14, cell: ({ created_at }) => <Ago at={created_at} /> },
];

export function Page() {
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="dataset"
          name="Upload a dataset"
          submit="Upload"
          permission="datasets:write"
          act={upload}
          fields={["name", "environment"]}
        >
          <Field name="file" label="Rows" help="JSON lines: one object per line.">
            {(control) => <input {...control} type="file" accept=".jsonl,.ndjson,application/jsonl" required />}
          </Field>
          <TextField name="name" label="Name" />
          <TextField name="environment" label="Environment" help="Every row is checked against its row schema." />
        </CreateResource>
      }
      title="Datasets"
      noun="dataset"
      list={(query, options) => api.datasets.list(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/datasets"
      empty={<p>No datasets yet.</p>}
    />
  );
}

async function upload(fields: FormData): Promise<DatasetView> {
  const file = fields.get("file");
  if (!(file instanceof Blob)) throw new Error("choose a file");
  return await api.datasets.upload(file, { name: textOf(fields, "name"), environment: textOf(fields, "environment") });
}
