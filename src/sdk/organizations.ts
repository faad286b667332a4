/** All organisations of a deployment, for operators. */
import type {
  CreatedOrganization,
  LimitsRequest,
  ListedOrganization,
  OrganizationRequestInput,
} from "../accounts/wire.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { Collection } from "./resource.ts";

export class Organizations extends Collection<ListedOrganization> {
  protected readonly path = "/organizations";

  /**
   * Creates a deployment's first organisation, once: `apiKey` is its ROLLCALL_BOOTSTRAP_TOKEN. The key is shown only
   * here.
   */
  bootstrap(request: { readonly name: string }, options: PostOptions = {}): Promise<CreatedOrganization> {
    return this.requests.post("/bootstrap", request, options);
  }

  /** Its key is shown only here. */
  create(request: OrganizationRequestInput, options: PostOptions = {}): Promise<CreatedOrganization> {
    return this.requests.post(this.path, request, options);
  }

  /** Changes only the fields that are given, also within `limits`; null removes a limit. */
  update(id: string, patch: LimitsRequest, options: CallOptions = {}): Promise<ListedOrganization> {
    return this.requests.patch(this.at(id), patch, options);
  }
}
