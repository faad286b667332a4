/** One trigger: its URL, its run, its deliveries, and a test with a payload. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { TriggerDelivery, TriggerTest, TriggerView } from "../../../triggers/wire.ts";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { Badge } from "../../components/badge.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import type { Column } from "../../components/data-table.tsx";
import { DeliveryLog } from "../../components/delivery-log.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { NOTHING, timeText } from "../../components/format.ts";
import { JsonView } from "../../components/json-view.tsx";
import { DeleteResource, ResourcePage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { useMay } from "../../layout/session.tsx";

export function Page() {
  const id = useParam("id");
  return (
    <ResourcePage noun="trigger" id={id} load={(options) => api.triggers.get(id, options)} nameOf={({ name }) => name}>
      {(trigger) => <Trigger trigger={trigger} />}
    </ResourcePage>
  );
}

function Trigger({ trigger }: { readonly trigger: TriggerView }) {
  const mayWrite = useMay("triggers:write");
  return (
    <>
      <Facts>
        <Fact name="Address">
          <code>{trigger.url}</code> <CopyButton text={trigger.url} what="address" />
        </Fact>
        <Fact name="Signed as">{trigger.verify.scheme}</Fact>
        <Fact name="While one is running">{trigger.concurrency}</Fact>
        {trigger.schedule !== null && (
          <Fact name="Schedule">
            <Shown text={`${trigger.schedule.cron} (${trigger.schedule.timezone})`} />, next run{" "}
            {timeText(trigger.next_at)}
          </Fact>
        )}
        <Fact name="Its runs belong to">
          <code>{trigger.created_by}</code>
        </Fact>
        <Fact name="State">
          {trigger.disabled ? "disabled: deliveries are refused, and its schedule starts nothing" : "ready"}
        </Fact>
      </Facts>
      {mayWrite && <TriggerActions trigger={trigger} />}
      <h2>Deliveries</h2>
      <DeliveryLog
        label="Deliveries"
        queryKey={["trigger", trigger.id, "deliveries"]}
        list={(after, limit, options) => api.triggers.deliveries.list(trigger.id, { after, limit }, options)}
        columns={COLUMNS}
        empty={<p>No deliveries yet.</p>}
      />
      <h2>Try a payload</h2>
      <TryPayload id={trigger.id} />
      <h2>The run it starts</h2>
      <JsonView value={{ run: trigger.run, map: trigger.map, when: trigger.when }} what="template" />
    </>
  );
}

function TriggerActions({ trigger }: { readonly trigger: TriggerView }) {
  return (
    <p className="row">
      <ActionButton act={() => api.triggers.update(trigger.id, { disabled: !trigger.disabled })} changes={["trigger"]}>
        {trigger.disabled ? "Enable it" : "Disable it"}
      </ActionButton>
      <DeleteResource noun="trigger" path="/triggers" act={() => api.triggers.delete(trigger.id)}>
        Deliveries to its address get 404 from then on. Runs that it started continue.
      </DeleteResource>
    </p>
  );
}

const COLUMNS: readonly Column<TriggerDelivery>[] = [
  { id: "at", header: "Came", width: 14, cell: ({ at }) => <Ago at={at} /> },
  { id: "event", header: "Event", width: 14, cell: ({ event }) => (event === null ? NOTHING : <Shown text={event} />) },
  {
    id: "state",
    header: "State",
    width: 16,
    cell: ({ state, more }) => (
      <>
        <Badge state={state} />
        {more > 0 && ` and ${more} like it`}
      </>
    ),
  },
  {
    id: "run",
    header: "Run",
    cell: ({ run_id }) =>
      run_id === null ? (
        NOTHING
      ) : (
        <Link to="/runs/$id" params={{ id: run_id }} search={{}}>
          {run_id}
        </Link>
      ),
  },
  {
    id: "why",
    header: "Why",
    cell: ({ error, superseded_by }) => {
      if (superseded_by !== null) return `delivery ${superseded_by} replaced it`;
      return error === null ? NOTHING : <Shown text={error.message} />;
    },
  },
];

function TryPayload({ id }: { readonly id: string }) {
  const [text, setText] = useState("{}");
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.triggers.test(id, { body: text }),
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    mutate();
  };
  return (
    <form className="fields" onSubmit={send}>
      <label>
        A payload, as its sender would post it (JSON)
        <textarea rows={5} value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} />
      </label>
      <p>
        <button type="submit" disabled={isPending}>
          Try it
        </button>
      </p>
      {error !== null && <ErrorNote error={error} />}
      {data !== undefined && <Would test={data} />}
    </form>
  );
}

function Would({ test }: { readonly test: TriggerTest }) {
  return (
    <div role="status">
      <p>
        It would <strong>{test.would}</strong>
        {test.would === "begin" ? " this run:" : "."}
      </p>
      <ul>
        {test.when.map(({ path, holds, found }) => (
          <li key={path}>
            <code>{path}</code> is <Shown text={JSON.stringify(found)} />: {holds ? "matches" : "does not match"}
          </li>
        ))}
        {test.errors.map(({ code, message }) => (
          <li key={code + message}>
            <Shown text={message} />
          </li>
        ))}
      </ul>
      {test.request !== null && <JsonView value={test.request} what="run" />}
    </div>
  );
}
