/** Uploaded datasets, and a form that uploads another. */
import { useState } from "react";
import type { DatasetView } from "../../../contract/uploaded-dataset.ts";
import { api } from "../../client.ts";
import type { Column } from "../../components/data-table.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Form, TextField, textOf } from "../../components/form.tsx";
import { bytesText, countText } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { ThingsPage } from "../../components/thing.tsx";
import { Ago } from "../../components/time.tsx";
import { useMay } from "../../layout/session.tsx";

const COLUMNS: readonly Column<DatasetView>[] = [
  { id: "name", header: "Dataset", cell: ({ id, name }) => <Shown text={name ?? id} /> },
  { id: "rows", header: "Rows", width: 14, numeric: true, cell: ({ rows }) => countText(rows) },
  { id: "bytes", header: "Size", width: 14, numeric: true, cell: ({ bytes }) => bytesText(bytes) },
  { id: "environment", header: "Checked for", cell: ({ environment }) => environment?.id ?? "no environment" },
  { id: "created", header: "Uploaded", width: 14, cell: ({ created_at }) => <Ago at={created_at} /> },
];

export function Page() {
  const [open, setOpen] = useState(false);
  const mayWrite = useMay("datasets:write");
  return (
    <ThingsPage
      action={
        mayWrite && (
          <button type="button" onClick={() => setOpen(true)}>
            Upload a dataset
          </button>
        )
      }
      title="Datasets"
      noun="dataset"
      list={(query, options) => api.listDatasets(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/datasets"
      empty={<p>No dataset was uploaded yet.</p>}
    >
      <Dialog title="Upload a dataset" open={open} onClose={() => setOpen(false)}>
        <Upload onDone={() => setOpen(false)} />
      </Dialog>
    </ThingsPage>
  );
}

function Upload({ onDone }: { readonly onDone: () => void }) {
  const upload = (fields: FormData) => {
    const file = fields.get("file");
    if (!(file instanceof Blob)) throw new Error("choose a file");
    return api.createDataset(file, { name: textOf(fields, "name"), environment: textOf(fields, "environment") });
  };
  return (
    <Form submit="Upload" act={upload} onDone={onDone} changes={["dataset"]} fields={["name", "environment"]}>
      <Field name="file" label="Rows" help="JSON lines: one object a line.">
        {(control) => <input {...control} type="file" accept=".jsonl,.ndjson,application/jsonl" required />}
      </Field>
      <TextField name="name" label="Name" />
      <TextField name="environment" label="Environment" help="Every row is checked against its row schema." />
    </Form>
  );
}
