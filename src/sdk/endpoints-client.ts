/** The part of the client about endpoints, and the secrets of environments. */
import type { Deleted, EndpointPatch, EndpointRequestInput, EndpointView, SecretView } from "../contract/endpoint.ts";
import type { Resealed } from "../contract/reseal.ts";
import type { CallOptions, ListQuery, Page, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";
import { TurnsClient } from "./turns-client.ts";

export class EndpointsClient extends TurnsClient {
  /** The key is sealed and never read back. One short call tells what the server supports, unless `probe` is false. */
  createEndpoint(request: EndpointRequestInput, options: PostOptions = {}): Promise<EndpointView> {
    return this.requests.post("/endpoints", request, options);
  }

  getEndpoint(idOrName: string, options: CallOptions = {}): Promise<EndpointView> {
    return this.requests.json(`/endpoints/${encodeURIComponent(idOrName)}`, options);
  }

  listEndpoints(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<EndpointView>> {
    return this.requests.json(`/endpoints${search(query)}`, options);
  }

  endpoints(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<EndpointView> {
    return eachOf(query, (page) => this.listEndpoints(page, options));
  }

  /** Only what is named changes; `api_key: null` removes the key. */
  updateEndpoint(idOrName: string, patch: EndpointPatch, options: CallOptions = {}): Promise<EndpointView> {
    return this.requests.patch(`/endpoints/${encodeURIComponent(idOrName)}`, patch, options);
  }

  /** Refused with `conflict` while an unfinished run uses it. */
  deleteEndpoint(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/endpoints/${encodeURIComponent(idOrName)}`, options);
  }

  /** Looks again at what the server supports. */
  probeEndpoint(idOrName: string, options: PostOptions = {}): Promise<EndpointView> {
    return this.requests.post(`/endpoints/${encodeURIComponent(idOrName)}/probe`, {}, options);
  }

  /** For operators: seals values under the current ROLLCALL_SECRET, a slice a call: `next` of it is `after` of the next. */
  reseal(query: { readonly after?: string | undefined } = {}, options: PostOptions = {}): Promise<Resealed> {
    return this.requests.post(`/reseal${search(query)}`, {}, options);
  }

  /** The value is written and never read back. */
  createSecret(
    secret: { readonly name: string; readonly value: string },
    options: PostOptions = {},
  ): Promise<SecretView> {
    return this.requests.post("/secrets", secret, options);
  }

  getSecret(idOrName: string, options: CallOptions = {}): Promise<SecretView> {
    return this.requests.json(`/secrets/${encodeURIComponent(idOrName)}`, options);
  }

  listSecrets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<SecretView>> {
    return this.requests.json(`/secrets${search(query)}`, options);
  }

  secrets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<SecretView> {
    return eachOf(query, (page) => this.listSecrets(page, options));
  }

  updateSecret(idOrName: string, patch: { readonly value: string }, options: CallOptions = {}): Promise<SecretView> {
    return this.requests.patch(`/secrets/${encodeURIComponent(idOrName)}`, patch, options);
  }

  deleteSecret(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/secrets/${encodeURIComponent(idOrName)}`, options);
  }
}
