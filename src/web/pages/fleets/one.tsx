/** One fleet: each replica's state with its reason, its weights, and its detected capabilities. */
import { Link } from "@tanstack/react-router";
import type { FleetView, ReplicaState, ReplicaView } from "../../../fleets/wire.ts";
import { useParam } from "../../address.ts";
import { api, queryClient } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Capabilities } from "../../components/capabilities.tsx";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { Form, numberOf, TextField, textOf } from "../../components/form.tsx";
import { countText } from "../../components/format.ts";
import { DeleteResource, ResourcePage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { useMay } from "../../layout/session.tsx";

const TONES: Readonly<Record<ReplicaState, Tone>> = {
  joining: "busy",
  ready: "good",
  draining: "warn",
  updating: "busy",
  down: "bad",
  stale: "warn",
};
const REFETCH_MS = 5000;

export function Page() {
  const id = useParam("id");
  return (
    <ResourcePage
      noun="fleet"
      id={id}
      refetchMs={REFETCH_MS}
      load={(options) => api.fleets.get(id, options)}
      nameOf={(fleet) => fleet.name}
    >
      {(fleet) => <Fleet fleet={fleet} />}
    </ResourcePage>
  );
}

function Fleet({ fleet }: { readonly fleet: FleetView }) {
  const mayWrite = useMay("endpoints:write");
  const { weights, update } = fleet;
  return (
    <>
      <Facts>
        <Fact name="Id">
          <code>{fleet.id}</code>
        </Fact>
        <Fact name="Updated by">{update.mode}</Fact>
        <Fact name="Concurrent calls">{countText(fleet.max_concurrent)}</Fact>
        <Fact name="Near">{fleet.location_hint ?? "anywhere"}</Fact>
        <Fact name="Weights">
          {weights === null ? (
            "not set by a training run"
          ) : (
            <>
              version {weights.version} of{" "}
              <Link to="/runs/$id" params={{ id: weights.run_id }} search={{}}>
                {weights.run_id}
              </Link>
            </>
          )}
        </Fact>
      </Facts>
      {mayWrite && (
        <p>
          <DeleteResource noun="fleet" path="/fleets" act={() => api.fleets.delete(fleet.id)}>
            It cannot be deleted while a run uses it. Its engines keep running.
          </DeleteResource>
        </p>
      )}
      <h2>Replicas</h2>
      {fleet.replicas.length === 0 && <p>It has no replicas yet, so it cannot take calls.</p>}
      {fleet.replicas.map((replica) => (
        <Replica key={replica.id} fleet={fleet.id} replica={replica} mayWrite={mayWrite} />
      ))}
      {mayWrite && <AddReplica fleet={fleet.id} />}
    </>
  );
}

interface ReplicaProps {
  readonly fleet: string;
  readonly replica: ReplicaView;
  readonly mayWrite: boolean;
}

function Replica({ fleet, replica, mayWrite }: ReplicaProps) {
  return (
    <section aria-label={`Replica ${replica.name}`}>
      <h3 className="row">
        <Shown text={replica.name} /> <Badge state={replica.state} tone={TONES[replica.state]} />
      </h3>
      {replica.reason !== null && (
        <p className="note warn">
          <Shown text={replica.reason} />
        </p>
      )}
      <Facts>
        <Fact name="Address">
          <Shown text={replica.base_url} />
        </Fact>
        <Fact name="Since">
          <Ago at={replica.since} />
        </Fact>
        <Fact name="Calls">
          {countText(replica.in_flight)} of {countText(replica.max_concurrent)}
        </Fact>
        <Fact name="Weights">{replica.version === null ? "of no training run, or unknown" : replica.version}</Fact>
      </Facts>
      {mayWrite && <ReplicaActions fleet={fleet} replica={replica} />}
      <details>
        <summary>Capabilities</summary>
        <Capabilities seen={replica.capabilities} />
      </details>
    </section>
  );
}

function ReplicaActions({ fleet, replica }: Omit<ReplicaProps, "mayWrite">) {
  const draining = replica.state === "draining";
  return (
    <p className="row">
      <ActionButton act={() => api.fleets.replicas.probe(fleet, replica.id)} changes={["fleet"]}>
        Probe it
      </ActionButton>
      <ActionButton
        act={() => api.fleets.replicas.update(fleet, replica.id, { draining: !draining })}
        changes={["fleet"]}
      >
        {draining ? "Resume" : "Drain it"}
      </ActionButton>
      <ConfirmButton
        name="Remove replica"
        destroys
        act={() => api.fleets.replicas.remove(fleet, replica.id)}
        onDone={() => queryClient.invalidateQueries({ queryKey: ["fleet"] })}
      >
        It gets no new calls. Calls in flight finish.
      </ConfirmButton>
    </p>
  );
}

function AddReplica({ fleet }: { readonly fleet: string }) {
  const add = (fields: FormData) =>
    api.fleets.replicas.add(fleet, {
      name: textOf(fields, "name") ?? "",
      base_url: textOf(fields, "base_url") ?? "",
      api_key: textOf(fields, "api_key"),
      max_concurrent: numberOf(fields, "max_concurrent"),
    });
  return (
    <details>
      <summary>Add a replica</summary>
      <Form
        submit="Add it"
        act={add}
        onDone={() => undefined}
        changes={["fleet"]}
        fields={["name", "base_url", "api_key", "max_concurrent"]}
      >
        <TextField name="name" label="Name" required />
        <TextField name="base_url" label="Address" type="url" required placeholder="https://gpu-0.example/v1" />
        <TextField name="api_key" label="Key" type="password" help="Stored encrypted; cannot be read back." />
        <TextField name="max_concurrent" label="Concurrent calls" type="number" />
      </Form>
    </details>
  );
}
