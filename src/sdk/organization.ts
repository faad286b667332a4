/** The organisation of the key. */
import type { OrganizationPatch, OrganizationView } from "../accounts/wire.ts";
import type { DeletionView } from "../contract/deletion.ts";
import type { CallOptions } from "./options.ts";
import { Resource } from "./resource.ts";

export class Organization extends Resource {
  get(options: CallOptions = {}): Promise<OrganizationView> {
    return this.requests.json("/organization", options);
  }

  /** Changes only the fields that are given. */
  update(patch: OrganizationPatch, options: CallOptions = {}): Promise<OrganizationView> {
    return this.requests.patch("/organization", patch, options);
  }

  /** Starts a job that deletes the organisation and everything in it, including this key. `confirm`: its name. */
  delete(confirm: string, options: CallOptions = {}): Promise<DeletionView> {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ confirm });
    return this.requests.json("/organization", { ...options, method: "DELETE", headers, body });
  }
}
