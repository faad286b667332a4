/** The people of the organisation. */
import type { PersonPatch, PersonView } from "../accounts/wire.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions } from "./options.ts";
import { Collection } from "./resource.ts";

export class People extends Collection<PersonView> {
  protected readonly path = "/people";

  /** Changes the person's role; the permissions of their keys follow it. */
  update(id: string, patch: PersonPatch, options: CallOptions = {}): Promise<PersonView> {
    return this.requests.patch(this.at(id), patch, options);
  }

  /** Ends the membership and revokes the person's keys. Throws `conflict` for the only owner. */
  delete(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(this.at(id), options);
  }
}
