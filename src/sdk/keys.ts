/** API keys. Ended keys stay in the list. */
import type { ApiKeyView, CreatedKey, KeyPatch, KeyRequestInput, RotateRequestInput } from "../accounts/wire.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { Readable } from "./resource.ts";

export class Keys extends Readable<ApiKeyView> {
  protected readonly path = "/keys";

  /**
   * `key` of the answer is the key, shown only here. It is null if the first answer was lost and the call was sent
   * again: rotate that key then.
   */
  create(request: KeyRequestInput, options: PostOptions = {}): Promise<CreatedKey> {
    return this.requests.post(this.path, request, options);
  }

  /** Changes only the fields that are given. */
  update(id: string, patch: KeyPatch, options: CallOptions = {}): Promise<ApiKeyView> {
    return this.requests.patch(this.at(id), patch, options);
  }

  /**
   * Replaces this key by a new one; the old one works for one more hour, or `overlap_s` seconds. `key` is as in
   * `create`.
   */
  rotate(id: string, request: RotateRequestInput = {}, options: PostOptions = {}): Promise<CreatedKey> {
    return this.requests.post(`${this.at(id)}/rotate`, request, options);
  }

  /** Within 5 seconds the key is refused everywhere. */
  revoke(id: string, options: CallOptions = {}): Promise<ApiKeyView> {
    return this.requests.delete(this.at(id), options);
  }
}
