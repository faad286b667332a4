/** Endpoints: the servers of models that runs call; by id or name. */
import type { EndpointPatch, EndpointRequestInput, EndpointView } from "../contract/endpoint.ts";
import type { PostOptions } from "./options.ts";
import { Editable } from "./resource.ts";

/**
 * The key of an endpoint is sealed and never shown again; `update` with `api_key: null` removes it. `create` asks the
 * server in one short call what it supports, unless `probe` is false. `delete` throws `conflict` while an unfinished run
 * uses the endpoint.
 */
export class Endpoints extends Editable<EndpointView, EndpointRequestInput, EndpointPatch> {
  protected readonly path = "/endpoints";

  /** Asks the server again what it supports. */
  probe(idOrName: string, options: PostOptions = {}): Promise<EndpointView> {
    return this.requests.post(`${this.at(idOrName)}/probe`, {}, options);
  }
}
