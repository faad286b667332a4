/** Organisations, projects, keys, people, sign-in and the audit log on the wire. Only hashes of tokens are stored. */
import * as z from "zod";
import { ResourceName } from "../contract/endpoint.ts";
import { DEFAULT_PROJECT, OrganizationLimits, Permission, Retention, Role } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { Billing, CreditLimit } from "../contract/money.ts";
import {
  Count,
  EXAMPLE,
  listOf,
  MaybeText,
  NonEmpty,
  named,
  namedInput,
  Positive,
  Seconds,
} from "../contract/primitives.ts";
import { ShownText } from "../contract/shown-text.ts";

const Name = ShownText.min(1).max(200);

/** A host name. With `*.` before it: every host under that name. */
const HostName = z
  .string()
  .max(253)
  .regex(/^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, {
    error: "must be a host name in lower case, without a port; a leading *. includes all its subdomains",
  });

const AllowedHosts = z
  .array(HostName)
  .max(LIMITS.allowedHosts)
  .nullable()
  .describe("hosts that endpoints and environments may call; null = any that the platform allows")
  .meta({ example: null });

const ProjectName = ResourceName.refine((name) => !/^pj_/.test(name), { error: "must not look like an id" });

export const OrganizationView = named("Organization", {
  object: z.literal("organization"),
  id: z.string().meta({ example: EXAMPLE.organization }),
  name: z.string().meta({ example: "Example Labs" }),
  limits: OrganizationLimits.meta({ id: "OrganizationLimits", example: {} }),
  allowed_hosts: AllowedHosts,
  billing: Billing.describe("off: nothing is charged; prepaid: up to the balance; postpaid: to −`credit_limit_micros`"),
  credit_limit_micros: CreditLimit.describe("how far a postpaid balance may fall below 0; null = any amount").meta({
    example: null,
  }),
  created_at: Seconds,
});
export type OrganizationView = z.infer<typeof OrganizationView>;

/** An organisation as an operator sees it. */
export const ListedOrganization = OrganizationView.omit({ allowed_hosts: true }).meta({ id: "ListedOrganization" });
export type ListedOrganization = z.infer<typeof ListedOrganization>;
export const OrganizationList = listOf(ListedOrganization, "OrganizationList", EXAMPLE.organization);

/** Only the given fields change. */
export const OrganizationPatch = z
  .strictObject({ name: Name.meta({ example: "Example Labs" }), allowed_hosts: AllowedHosts })
  .partial()
  .meta({ id: "OrganizationPatch" });
export type OrganizationPatch = z.output<typeof OrganizationPatch>;

const LimitsPatch = OrganizationLimits.partial().meta({ id: "OrganizationLimitsPatch" });

/** What an operator sets. Only the given fields change; null removes a limit. */
export const LimitsRequest = z
  .strictObject({
    limits: LimitsPatch.meta({ example: { concurrent_rollouts: 50_000 } }),
    billing: Billing.meta({ example: "postpaid" }),
    credit_limit_micros: CreditLimit.meta({ example: 100_000_000 }),
  })
  .partial()
  .meta({ id: "LimitsRequest" });
export type LimitsRequest = z.output<typeof LimitsRequest>;

export const OrganizationRequest = namedInput("OrganizationRequest", {
  name: Name.meta({ example: "Example Labs" }),
  project: ProjectName.default(DEFAULT_PROJECT).describe("name of its first project"),
  limits: LimitsPatch.default({}).describe("values that differ from the defaults").meta({ example: {} }),
});
export type OrganizationRequest = z.output<typeof OrganizationRequest>;
export type OrganizationRequestInput = z.input<typeof OrganizationRequest>;

export const BootstrapRequest = namedInput("BootstrapRequest", {
  name: Name.meta({ example: "Example Labs" }),
});
export type BootstrapRequest = z.output<typeof BootstrapRequest>;

const RetentionView = Retention.meta({ id: "Retention", example: {} });

export const ProjectView = named("Project", {
  object: z.literal("project"),
  id: z.string().meta({ example: EXAMPLE.project }),
  name: z.string().meta({ example: "math" }),
  retention: RetentionView,
  created_at: Seconds,
});
export type ProjectView = z.infer<typeof ProjectView>;
export const ProjectList = listOf(ProjectView, "ProjectList", EXAMPLE.project);

const RetentionPatch = Retention.partial().meta({ id: "RetentionPatch" });

export const ProjectRequest = namedInput("ProjectRequest", {
  name: ProjectName.meta({ example: "math" }),
  retention: RetentionPatch.default({}).describe("values that differ from the defaults").meta({ example: {} }),
});
export type ProjectRequest = z.output<typeof ProjectRequest>;
export type ProjectRequestInput = z.input<typeof ProjectRequest>;

/** Only the given fields change, also within `retention`. */
export const ProjectPatch = z
  .strictObject({ name: ProjectRequest.shape.name, retention: RetentionPatch })
  .partial()
  .meta({ id: "ProjectPatch" });
export type ProjectPatch = z.output<typeof ProjectPatch>;

const RequestsPerMinute = Positive.max(1_000_000).nullable();
const Scopes = z
  .array(Permission)
  .min(1)
  .max(Permission.options.length)
  .refine((scopes) => new Set(scopes).size === scopes.length, { error: "names a scope twice" });

export const ApiKeyView = named("ApiKey", {
  object: z.literal("key"),
  id: z.string().meta({ example: EXAMPLE.key }),
  name: z.string().meta({ example: "nightly evals" }),
  project_id: MaybeText.describe("null: any project of the organisation").meta({ example: EXAMPLE.project }),
  person_id: MaybeText.describe("whose key it is; null for a program's"),
  scopes: z.array(Permission).meta({ example: ["runs:write", "rollouts:read"] }),
  prefix: z.string().describe("the first characters of the key").meta({ example: "rk_7m2q" }),
  last4: z.string().describe("the last characters of the key").meta({ example: "x9d4" }),
  requests_per_minute: z.int().nullable().describe("null: only the organisation's limit applies"),
  created_by: z.string().describe("a key, a person, or `bootstrap`").meta({ example: EXAMPLE.person }),
  created_at: Seconds,
  expires_at: Seconds.nullable().meta({ example: null }),
  revoked_at: Seconds.nullable().meta({ example: null }),
  rotated_to: MaybeText.describe("the key that replaces it"),
});
export type ApiKeyView = z.infer<typeof ApiKeyView>;
export const ApiKeyList = listOf(ApiKeyView, "ApiKeyList", EXAMPLE.key);

/** The token is only in the first reply. */
export const CreatedKey = ApiKeyView.extend({
  key: MaybeText.describe("the key itself, shown only here; null in the reply to a repeat").meta({
    example: EXAMPLE.token,
  }),
}).meta({ id: "CreatedApiKey" });
export type CreatedKey = z.infer<typeof CreatedKey>;

export const KeyRequest = namedInput("ApiKeyRequest", {
  name: Name.meta({ example: "nightly evals" }),
  scopes: Scopes.describe("at most those of the key that asks").meta({ example: ["runs:write", "rollouts:read"] }),
  project: NonEmpty.max(200)
    .nullable()
    .default(null)
    .describe("id or name of the only project it may access; null = all of the organisation")
    .meta({ example: "math" }),
  expires_at: Seconds.nullable().default(null).describe("null = never").meta({ example: null }),
  requests_per_minute: RequestsPerMinute.default(null).describe("null = only the organisation's limit applies"),
});
export type KeyRequest = z.output<typeof KeyRequest>;
export type KeyRequestInput = z.input<typeof KeyRequest>;

/** Only the given fields change. */
export const KeyPatch = z
  .strictObject({
    name: KeyRequest.shape.name,
    scopes: KeyRequest.shape.scopes,
    requests_per_minute: RequestsPerMinute,
  })
  .partial()
  .meta({ id: "ApiKeyPatch" });
export type KeyPatch = z.output<typeof KeyPatch>;

export const RotateRequest = namedInput("RotateKeyRequest", {
  overlap_s: z.int().min(0).max(604_800).default(3600).describe("seconds that the previous key still works"),
});
export type RotateRequest = z.output<typeof RotateRequest>;
export type RotateRequestInput = z.input<typeof RotateRequest>;

/** A new organisation, with its first project and a key with all permissions in it. */
export const CreatedOrganization = OrganizationView.extend({ project: ProjectView, key: CreatedKey }).meta({
  id: "CreatedOrganization",
});
export type CreatedOrganization = z.infer<typeof CreatedOrganization>;

/** ASCII only, so that each address has exactly one lower-case form. */
const Email = z
  .email({ error: "must be an e-mail address" })
  .max(254)
  .transform((text) => text.toLowerCase());

export const PersonView = named("Person", {
  object: z.literal("person"),
  id: z.string().meta({ example: EXAMPLE.person }),
  email: z.string().describe("the address of their first invitation").meta({ example: "ann@example.com" }),
  email_proven: z
    .boolean()
    .optional()
    .describe("whether Cloudflare Access confirmed the address")
    .meta({ example: false }),
  name: MaybeText.meta({ example: "Ann" }),
  role: Role,
  created_at: Seconds.describe("member since, in seconds since the epoch"),
});
export type PersonView = z.infer<typeof PersonView>;
export const PersonList = listOf(PersonView, "PersonList", EXAMPLE.person);
export const PersonPatch = namedInput("PersonPatch", { role: Role.meta({ example: "developer" }) });
export type PersonPatch = z.output<typeof PersonPatch>;

export const InvitationView = named("Invitation", {
  object: z.literal("invitation"),
  id: z.string().meta({ example: EXAMPLE.invitation }),
  email: z.string().meta({ example: "ann@example.com" }),
  role: Role,
  invited_by: z.string().meta({ example: EXAMPLE.person }),
  created_at: Seconds,
  expires_at: Seconds,
  accepted_at: Seconds.nullable().meta({ example: null }),
});
export type InvitationView = z.infer<typeof InvitationView>;
export const InvitationList = listOf(InvitationView, "InvitationList", EXAMPLE.invitation);

export const CreatedInvitation = InvitationView.extend({
  token: MaybeText.describe("the token for accepting, shown only here; null in the reply to a repeat").meta({
    example: EXAMPLE.invitationToken,
  }),
  url: MaybeText.describe("a link with the token to the page for accepting; null when the token is").meta({
    example: `https://rollcall.example/join#${EXAMPLE.invitationToken}`,
  }),
}).meta({ id: "CreatedInvitation" });
export type CreatedInvitation = z.infer<typeof CreatedInvitation>;

export const InvitationRequest = namedInput("InvitationRequest", {
  email: Email.meta({ example: "ann@example.com" }),
  role: Role.meta({ example: "developer" }),
});
export type InvitationRequest = z.output<typeof InvitationRequest>;

export const AcceptRequest = namedInput("AcceptInvitationRequest", {
  token: NonEmpty.max(200).meta({ example: EXAMPLE.invitationToken }),
  name: Name.nullable().default(null).meta({ example: "Ann" }),
});
export type AcceptRequest = z.output<typeof AcceptRequest>;
export type AcceptRequestInput = z.input<typeof AcceptRequest>;

const Named = z.object({ id: z.string(), name: z.string() });

export const AcceptedInvitation = named("AcceptedInvitation", {
  organization: Named.meta({ example: { id: EXAMPLE.organization, name: "Example Labs" } }),
  person: PersonView,
  key: CreatedKey.meta({ example: { name: "Ann", project_id: null, person_id: EXAMPLE.person } }),
});
export type AcceptedInvitation = z.infer<typeof AcceptedInvitation>;

export const WhoAmI = named("Caller", {
  object: z.literal("caller"),
  who: z.string().describe("a key, a person, or the run whose trainer it is").meta({ example: EXAMPLE.key }),
  organization: Named.meta({ example: { id: EXAMPLE.organization, name: "Example Labs" } }),
  project: Named.nullable()
    .describe("null: any project of the organisation")
    .meta({ example: { id: EXAMPLE.project, name: "math" } }),
  scopes: z.array(Permission).meta({ example: ["runs:write", "rollouts:read"] }),
  expires_at: Seconds.nullable().meta({ example: null }),
  session: z
    .object({ id: z.string(), expires_at: Seconds })
    .nullable()
    .describe("the browser's session; null for a key, a trainer, and a person identified by Access")
    .meta({ example: null }),
});
export type WhoAmI = z.infer<typeof WhoAmI>;

export const AuditEntry = named("AuditEntry", {
  object: z.literal("audit_entry"),
  id: z.string().describe("increases within the organisation").meta({ example: "41" }),
  at: Seconds,
  who: z
    .string()
    .describe("the key, the person identified by Access, or the run of the trainer")
    .meta({ example: "key_01ks2h9q4e7mxw3f0tbn8vc5zd4w8k2hjr" }),
  action: z.string().describe("the id of the operation").meta({ example: "cancelRun" }),
  project_id: MaybeText.meta({ example: null }),
  target: MaybeText.describe("what was changed, as given in the request").meta({ example: EXAMPLE.run }),
  made: MaybeText.describe("the id of what was created").meta({ example: null }),
  request_id: z.string().meta({ example: "7f3d9c52-6a0e-4a39-9d54-5c0c2d1f7b11" }),
  status: z
    .int()
    .nullable()
    .describe("HTTP status of the reply; null while in progress, and for good if the platform stopped in the middle")
    .meta({ example: 200 }),
  released: z
    .object({ calls: Count, micros: Count })
    .optional()
    .describe("micro-dollars released of those reserved for a run's lost calls; absent if none"),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

export const AuditList = listOf(AuditEntry, "AuditList", "41").extend({
  dropped: Count.describe("number of older entries already deleted").meta({ example: 0 }),
});
export type AuditList = z.infer<typeof AuditList>;

const Secret = NonEmpty.max(200);

/** The link that `rollcall view` opens: the code is after the `#`, which browsers do not send. */
export const SignInCode = named("SignInCode", {
  object: z.literal("sign_in_code"),
  code: z.string().describe("can be used once, shown only here").meta({ example: EXAMPLE.signInCode }),
  url: z
    .string()
    .describe("opens the page and signs in; append `&to=/runs/…` to open another page")
    .meta({ example: `https://rollcall.example/sign-in#code=${EXAMPLE.signInCode}` }),
  expires_at: Seconds,
});
export type SignInCode = z.infer<typeof SignInCode>;

/** A browser signs in with one of the two. */
export const SessionRequest = z
  .strictObject({
    code: Secret.optional().describe("a one-time code").meta({ example: EXAMPLE.signInCode }),
    key: Secret.optional().describe("an API key, instead of a code"),
  })
  .refine(({ code, key }) => (code === undefined) !== (key === undefined), { error: "send a code or a key" })
  .meta({ id: "SessionRequest", example: { code: EXAMPLE.signInCode } });
export type SessionRequest = z.output<typeof SessionRequest>;

export const SessionView = named("Session", {
  object: z.literal("session"),
  id: z.string().meta({ example: EXAMPLE.session }),
  key_id: MaybeText.describe("the key it was started with, whose scopes it has").meta({ example: EXAMPLE.key }),
  person_id: MaybeText.describe("or the person, signed in by Cloudflare Access"),
  project_id: MaybeText.describe("of a key for one project; null: any of the organisation").meta({
    example: EXAMPLE.project,
  }),
  created_at: Seconds,
  expires_at: Seconds,
});
export type SessionView = z.infer<typeof SessionView>;
export const SessionList = listOf(SessionView, "SessionList", EXAMPLE.session);
