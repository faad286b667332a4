/** One endpoint: its URL and the result of a probe. */
import type { EndpointView } from "../../../contract/endpoint.ts";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { Capabilities } from "../../components/capabilities.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, dollarsText, timeText } from "../../components/format.ts";
import { DeleteResource, ResourcePage } from "../../components/resource.tsx";
import { Shown } from "../../components/shown.tsx";
import { useMay } from "../../layout/session.tsx";

export function Page() {
  const id = useParam("id");
  return (
    <ResourcePage
      noun="endpoint"
      id={id}
      load={(options) => api.endpoints.get(id, options)}
      nameOf={(endpoint) => endpoint.name}
    >
      {(endpoint) => (
        <>
          <EndpointFacts endpoint={endpoint} />
          <EndpointActions endpoint={endpoint} />
          <h2>Capabilities</h2>
          <Capabilities seen={endpoint.capabilities} />
        </>
      )}
    </ResourcePage>
  );
}

function EndpointFacts({ endpoint }: { readonly endpoint: EndpointView }) {
  const { prices } = endpoint;
  return (
    <Facts>
      <Fact name="Id">
        <code>{endpoint.id}</code>
      </Fact>
      <Fact name="Address">
        <Shown text={endpoint.base_url} />
      </Fact>
      <Fact name="Key">{endpoint.api_key_last4 === null ? "none" : `…${endpoint.api_key_last4}`}</Fact>
      <Fact name="Concurrent rollouts">
        {endpoint.max_concurrent === null ? "each run's own limit" : countText(endpoint.max_concurrent)}
      </Fact>
      <Fact name="Requests per minute">{endpoint.rpm === null ? "no limit" : countText(endpoint.rpm)}</Fact>
      <Fact name="Prices">
        {prices === null
          ? "not set"
          : `${dollarsText(prices.input_per_mtok_micros)} in, ${dollarsText(prices.output_per_mtok_micros)} out, per million tokens`}
      </Fact>
      <Fact name="Changed">{timeText(endpoint.updated_at)}</Fact>
    </Facts>
  );
}

function EndpointActions({ endpoint }: { readonly endpoint: EndpointView }) {
  const mayWrite = useMay("endpoints:write");
  if (!mayWrite) return null;
  return (
    <p className="row">
      <ActionButton
        act={() => api.endpoints.probe(endpoint.id)}
        changes={["endpoint"]}
        message={() => "It was probed."}
      >
        Probe it
      </ActionButton>
      <DeleteResource noun="endpoint" path="/endpoints" act={() => api.endpoints.delete(endpoint.id)}>
        It cannot be deleted while a run uses it.
      </DeleteResource>
    </p>
  );
}
