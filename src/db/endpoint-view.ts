/** A named endpoint in the shape of the wire, member by member: the sealed key is not for it. */
import type { EndpointView } from "../contract/endpoint.ts";
import type { NamedEndpoint } from "./endpoints.ts";

export function endpointViewOf(endpoint: NamedEndpoint): EndpointView {
  return {
    object: "endpoint",
    id: endpoint.id,
    name: endpoint.name,
    base_url: endpoint.base_url,
    api_key_last4: endpoint.api_key_last4,
    max_concurrent: endpoint.max_concurrent,
    rpm: endpoint.rpm,
    prices: endpoint.prices,
    capabilities: endpoint.capabilities,
    created_at: seconds(endpoint.created_at),
    updated_at: seconds(endpoint.updated_at ?? endpoint.created_at),
  };
}

function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}
