/** Invitations to the organisation. Those that have ended stay in the list. */
import type {
  AcceptedInvitation,
  AcceptRequestInput,
  CreatedInvitation,
  InvitationRequest,
  InvitationView,
} from "../accounts/wire.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { Collection } from "./resource.ts";

export class Invitations extends Collection<InvitationView> {
  protected readonly path = "/invitations";

  /** The person accepts with `token`. It is shown only here, and null in the answer to a repeated call. */
  create(request: InvitationRequest, options: PostOptions = {}): Promise<CreatedInvitation> {
    return this.requests.post(this.path, request, options);
  }

  /** Makes the holder of the token a member; no key is needed. The answer shows their own key, only here. */
  accept(request: AcceptRequestInput, options: PostOptions = {}): Promise<AcceptedInvitation> {
    return this.requests.post("/invitations/accept", request, options);
  }

  delete(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(this.at(id), options);
  }
}
