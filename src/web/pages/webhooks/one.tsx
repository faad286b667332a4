/** One webhook endpoint: its pending events, its deliveries, and buttons to send again. */
import { useState } from "react";
import type { WebhookDelivery, WebhookView } from "../../../webhooks/wire.ts";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { Badge } from "../../components/badge.tsx";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import type { Column } from "../../components/data-table.tsx";
import { DeliveryLog } from "../../components/delivery-log.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, NOTHING, timeText } from "../../components/format.ts";
import { DeleteResource, ResourcePage } from "../../components/resource.tsx";
import { ShownOnce } from "../../components/said-once.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { useMay } from "../../layout/session.tsx";

export function Page() {
  const id = useParam("id");
  return (
    <ResourcePage
      noun="webhook"
      id={id}
      load={(options) => api.webhookEndpoints.get(id, options)}
      nameOf={({ url }) => url}
    >
      {(webhook) => <Webhook webhook={webhook} />}
    </ResourcePage>
  );
}

function Webhook({ webhook }: { readonly webhook: WebhookView }) {
  const mayWrite = useMay("webhooks:write");
  const { backlog } = webhook;
  return (
    <>
      {webhook.disabled_at !== null && (
        <p className="note warn">
          It has received no events since {timeText(webhook.disabled_at)}
          {webhook.disabled_reason !== null && (
            <>
              : <Shown text={webhook.disabled_reason} />
            </>
          )}
        </p>
      )}
      <Facts>
        <Fact name="Description">
          <Shown text={webhook.description || NOTHING} />
        </Fact>
        <Fact name="Events">{webhook.events?.join(", ") ?? "all events of the project"}</Fact>
        <Fact name="Waiting">{countText(backlog.pending)}</Fact>
        <Fact name="Given up, kept for a replay">{countText(backlog.failed)}</Fact>
        <Fact name="Dropped, too many">{countText(backlog.dropped)}</Fact>
        <Fact name="Failures in a row">{countText(backlog.failures_in_a_row)}</Fact>
        <Fact name="Signed by">
          {webhook.secrets.length} {webhook.secrets.length === 1 ? "secret" : "secrets"}
        </Fact>
      </Facts>
      {mayWrite && <WebhookActions webhook={webhook} />}
      <h2>Deliveries</h2>
      <DeliveryLog
        label="Deliveries"
        queryKey={["webhook", webhook.id, "deliveries"]}
        list={(after, limit, options) => api.webhookEndpoints.deliveries.list(webhook.id, { after, limit }, options)}
        columns={columnsOf(webhook.id, mayWrite)}
        empty={<p>No deliveries yet.</p>}
      />
    </>
  );
}

function WebhookActions({ webhook }: { readonly webhook: WebhookView }) {
  const [secret, setSecret] = useState<string | null | undefined>();
  const { id } = webhook;
  const disabled = webhook.disabled_at !== null;
  const rotate = async () => setSecret((await api.webhookEndpoints.rotateSecret(id)).secret);
  return (
    <>
      <p className="row">
        <ActionButton
          act={() => api.webhookEndpoints.test(id)}
          changes={["webhook"]}
          message={({ state }) => words(state)}
        >
          Send a test
        </ActionButton>
        <ActionButton act={() => api.webhookEndpoints.update(id, { disabled: !disabled })} changes={["webhook"]}>
          {disabled ? "Enable it" : "Disable it"}
        </ActionButton>
        <ConfirmButton name="Rotate secret" act={rotate}>
          Deliveries are signed with both secrets for a day.
        </ConfirmButton>
        <DeleteResource
          noun="webhook"
          path="/webhooks"
          name="Delete address"
          act={() => api.webhookEndpoints.delete(id)}
        >
          Pending deliveries are not sent.
        </DeleteResource>
      </p>
      {secret !== undefined && <ShownOnce what="signing secret" value={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}

function words(state: WebhookDelivery["state"]): string {
  return state === "pending" ? "It is being delivered." : `The test is ${state}.`;
}

function columnsOf(id: string, mayWrite: boolean): readonly Column<WebhookDelivery>[] {
  return [
    { id: "at", header: "Made", width: 14, cell: ({ created_at }) => <Ago at={created_at} /> },
    { id: "type", header: "Event", width: 20, cell: ({ type }) => type },
    { id: "subject", header: "About", cell: ({ subject }) => <Shown text={subject} /> },
    { id: "state", header: "State", width: 14, cell: ({ state }) => <Badge state={state} /> },
    { id: "attempts", header: "Tries", width: 8, numeric: true, cell: ({ attempts }) => attempts },
    {
      id: "answer",
      header: "Answer",
      cell: ({ status, error, answer }) => (
        <Shown text={[status, error ?? answer].filter(Boolean).join(" ") || NOTHING} />
      ),
    },
    {
      id: "again",
      header: "Again",
      width: 14,
      cell: (delivery) =>
        mayWrite && delivery.state !== "pending" ? (
          <ActionButton act={() => api.webhookEndpoints.deliveries.replay(id, delivery.id)} changes={["webhook"]}>
            Send again
          </ActionButton>
        ) : (
          NOTHING
        ),
    },
  ];
}
