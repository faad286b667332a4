/** Webhook endpoints, and a form that adds one. */
import { useState } from "react";
import type { CreatedWebhook, WebhookRequestInput, WebhookView } from "../../../webhooks/wire.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { TextField, textOf } from "../../components/form.tsx";
import { countText, NOTHING } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { ShownOnce } from "../../components/said-once.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const COLUMNS: readonly Column<WebhookView>[] = [
  { id: "url", header: "Address", cell: ({ url }) => <Shown text={url} /> },
  { id: "description", header: "Description", cell: ({ description }) => <Shown text={description || NOTHING} /> },
  { id: "events", header: "Events", cell: ({ events }) => events?.join(", ") ?? "all" },
  { id: "waiting", header: "Waiting", width: 10, numeric: true, cell: ({ backlog }) => countText(backlog.pending) },
  { id: "failed", header: "Given up", width: 10, numeric: true, cell: ({ backlog }) => countText(backlog.failed) },
  {
    id: "state",
    header: "State",
    width: 14,
    cell: ({ disabled_at }) =>
      disabled_at === null ? <Badge state="ready" /> : <Badge state="disabled" tone="warn" />,
  },
  { id: "updated", header: "Changed", width: 14, cell: ({ updated_at }) => <Ago at={updated_at} /> },
];

export function Page() {
  const [made, setMade] = useState<CreatedWebhook | null>(null);
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="webhook"
          name="Add a webhook"
          submit="Add"
          permission="webhooks:write"
          act={createWebhook}
          onMade={setMade}
          fields={["url", "description", "events"]}
        >
          <TextField name="url" label="Address" type="url" required placeholder="https://hooks.example/rollcall" />
          <TextField name="description" label="Description" />
          <TextField
            name="events"
            label="Events"
            help="Names separated by commas; run.* for all run events. Empty: all."
          />
        </CreateResource>
      }
      title="Webhooks"
      noun="webhook"
      list={(query, options) => api.webhookEndpoints.list(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/webhooks"
      empty={<p>No webhooks yet.</p>}
    >
      {made !== null && <ShownOnce what="signing secret" value={made.secret} onClose={() => setMade(null)} />}
    </ResourcesPage>
  );
}

type Events = NonNullable<WebhookRequestInput["events"]>;

function createWebhook(fields: FormData): Promise<CreatedWebhook> {
  // The API reports an unknown name.
  const events = textOf(fields, "events")?.split(/[\s,]+/) as Events | undefined;
  return api.webhookEndpoints.create({
    url: textOf(fields, "url") ?? "",
    description: textOf(fields, "description"),
    events,
  });
}
