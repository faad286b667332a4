/** Secrets of environments; by id or name. */
import type { SecretView } from "../contract/endpoint.ts";
import type { Resealed } from "../contract/reseal.ts";
import type { PostOptions } from "./options.ts";
import { search } from "./requests.ts";
import { Editable } from "./resource.ts";

export interface SecretRequest {
  readonly name: string;
  readonly value: string;
}

/** The value of a secret is sealed and never shown again. */
export class Secrets extends Editable<SecretView, SecretRequest, Pick<SecretRequest, "value">> {
  protected readonly path = "/secrets";

  /**
   * For operators: seals stored values under the current ROLLCALL_SECRET, one slice per call. `next` of the reply is
   * `after` of the next call.
   */
  reseal(query: { readonly after?: string | undefined } = {}, options: PostOptions = {}): Promise<Resealed> {
    return this.requests.post(`/reseal${search(query)}`, {}, options);
  }
}
