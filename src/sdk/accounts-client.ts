/** The part of the client about who asks: organisations, projects, keys, people. */
import type {
  AcceptedInvitation,
  AcceptRequestInput,
  ApiKeyView,
  CreatedInvitation,
  CreatedKey,
  CreatedOrganization,
  InvitationRequest,
  InvitationView,
  KeyPatch,
  KeyRequestInput,
  LimitsRequest,
  ListedOrganization,
  OrganizationPatch,
  OrganizationRequestInput,
  OrganizationView,
  PersonPatch,
  PersonView,
  ProjectPatch,
  ProjectRequestInput,
  ProjectView,
  RotateRequestInput,
  WhoAmI,
} from "../contract/accounts.ts";
import type { AuditEntry, AuditList } from "../contract/audit-log.ts";
import type { DeletionView } from "../contract/deletion.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { AuditLogQuery, CallOptions, ListQuery, Page, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";
import { SessionsClient } from "./sessions-client.ts";

export class AccountsClient extends SessionsClient {
  /** Whom the key is for, and what it may do. */
  whoAmI(options: CallOptions = {}): Promise<WhoAmI> {
    return this.requests.json("/whoami", options);
  }

  /** A deployment's first organisation, once: `apiKey` is its ROLLCALL_BOOTSTRAP_TOKEN. The key is said here only. */
  bootstrap(request: { readonly name: string }, options: PostOptions = {}): Promise<CreatedOrganization> {
    return this.requests.post("/bootstrap", request, options);
  }

  getOrganization(options: CallOptions = {}): Promise<OrganizationView> {
    return this.requests.json("/organization", options);
  }

  /** Only what is named changes. */
  updateOrganization(patch: OrganizationPatch, options: CallOptions = {}): Promise<OrganizationView> {
    return this.requests.patch("/organization", patch, options);
  }

  /** For an operator. Its key is said here only. */
  createOrganization(request: OrganizationRequestInput, options: PostOptions = {}): Promise<CreatedOrganization> {
    return this.requests.post("/organizations", request, options);
  }

  /** One page of all there are, for an operator. */
  listOrganizations(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<ListedOrganization>> {
    return this.requests.json(`/organizations${search(query)}`, options);
  }

  organizations(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<ListedOrganization> {
    return eachOf(query, (page) => this.listOrganizations(page, options));
  }

  /** For an operator. Only the limits that are named change; null lifts one. */
  updateLimits(
    id: string,
    limits: NonNullable<LimitsRequest["limits"]>,
    options: CallOptions = {},
  ): Promise<ListedOrganization> {
    return this.requests.patch(`/organizations/${encodeURIComponent(id)}`, { limits }, options);
  }

  /** For an operator. Only what is named changes. */
  updateBilling(
    id: string,
    billing: Omit<LimitsRequest, "limits">,
    options: CallOptions = {},
  ): Promise<ListedOrganization> {
    return this.requests.patch(`/organizations/${encodeURIComponent(id)}`, billing, options);
  }

  createProject(request: ProjectRequestInput, options: PostOptions = {}): Promise<ProjectView> {
    return this.requests.post("/projects", request, options);
  }

  getProject(idOrName: string, options: CallOptions = {}): Promise<ProjectView> {
    return this.requests.json(`/projects/${encodeURIComponent(idOrName)}`, options);
  }

  /** One page of the projects that the key reaches. */
  listProjects(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<ProjectView>> {
    return this.requests.json(`/projects${search(query)}`, options);
  }

  projects(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<ProjectView> {
    return eachOf(query, (page) => this.listProjects(page, options));
  }

  /** Only what is named changes, in `retention` too. */
  updateProject(idOrName: string, patch: ProjectPatch, options: CallOptions = {}): Promise<ProjectView> {
    return this.requests.patch(`/projects/${encodeURIComponent(idOrName)}`, patch, options);
  }

  /**
   * Makes a key. `key` holds it, here only: null in the answer to a repeat, when the first answer was lost. Rotate that
   * key then.
   */
  createKey(request: KeyRequestInput, options: PostOptions = {}): Promise<CreatedKey> {
    return this.requests.post("/keys", request, options);
  }

  getKey(id: string, options: CallOptions = {}): Promise<ApiKeyView> {
    return this.requests.json(`/keys/${encodeURIComponent(id)}`, options);
  }

  /** One page of keys, those that have ended among them. */
  listKeys(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<ApiKeyView>> {
    return this.requests.json(`/keys${search(query)}`, options);
  }

  keys(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<ApiKeyView> {
    return eachOf(query, (page) => this.listKeys(page, options));
  }

  /** Deletes a project with everything in it, by a job. It takes a key of the whole organisation. */
  deleteProject(idOrName: string, options: CallOptions = {}): Promise<DeletionView> {
    return this.requests.json(`/projects/${encodeURIComponent(idOrName)}`, { ...options, method: "DELETE" });
  }

  /** Deletes the organisation of the key with everything in it, this key too. `confirm`: its name. */
  deleteOrganization(confirm: string, options: CallOptions = {}): Promise<DeletionView> {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ confirm });
    return this.requests.json("/organization", { ...options, method: "DELETE", headers, body });
  }

  /** Only what is named changes. */
  updateKey(id: string, patch: KeyPatch, options: CallOptions = {}): Promise<ApiKeyView> {
    return this.requests.patch(`/keys/${encodeURIComponent(id)}`, patch, options);
  }

  /** Another key in its place; the one before works an hour more, or `overlap_s` seconds. `key` as of `createKey`. */
  rotateKey(id: string, request: RotateRequestInput = {}, options: PostOptions = {}): Promise<CreatedKey> {
    return this.requests.post(`/keys/${encodeURIComponent(id)}/rotate`, request, options);
  }

  /** Within 5 seconds the key is refused everywhere. */
  revokeKey(id: string, options: CallOptions = {}): Promise<ApiKeyView> {
    return this.requests.json(`/keys/${encodeURIComponent(id)}`, { ...options, method: "DELETE" });
  }

  /** One page of the organisation's people. */
  listPeople(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<PersonView>> {
    return this.requests.json(`/people${search(query)}`, options);
  }

  people(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<PersonView> {
    return eachOf(query, (page) => this.listPeople(page, options));
  }

  /** Gives them another role, which their keys follow. */
  updatePerson(id: string, patch: PersonPatch, options: CallOptions = {}): Promise<PersonView> {
    return this.requests.patch(`/people/${encodeURIComponent(id)}`, patch, options);
  }

  /** Ends the membership and revokes their keys. Refused with `conflict` for the only owner. */
  deletePerson(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/people/${encodeURIComponent(id)}`, options);
  }

  /** `token` is what the person accepts with, said here only: null in the answer to a repeat. */
  createInvitation(request: InvitationRequest, options: PostOptions = {}): Promise<CreatedInvitation> {
    return this.requests.post("/invitations", request, options);
  }

  /** One page of invitations, those that have ended among them. */
  listInvitations(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<InvitationView>> {
    return this.requests.json(`/invitations${search(query)}`, options);
  }

  invitations(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<InvitationView> {
    return eachOf(query, (page) => this.listInvitations(page, options));
  }

  /** Makes whoever has the token a member; no key is needed. Theirs is in the answer, here only. */
  acceptInvitation(request: AcceptRequestInput, options: PostOptions = {}): Promise<AcceptedInvitation> {
    return this.requests.post("/invitations/accept", request, options);
  }

  deleteInvitation(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/invitations/${encodeURIComponent(id)}`, options);
  }

  /** One page of what was changed in the organisation, newest first. */
  listAuditLog(query: AuditLogQuery = {}, options: CallOptions = {}): Promise<AuditList> {
    return this.requests.json(`/audit-log${search(query)}`, options);
  }

  auditLog(query: AuditLogQuery = {}, options: CallOptions = {}): AsyncGenerator<AuditEntry> {
    return eachOf(query, (page) => this.listAuditLog(page, options));
  }
}
