/** Routes for people of an organisation, and for invitations. */

import { Deleted } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { type Database, databaseOf } from "../../kernel/db/database.ts";
import { CREATED_HEADERS, creationReply, readBody, readCreation } from "../../kernel/http/answer.ts";
import { logDone } from "../../kernel/http/audit.ts";
import { unwrap } from "../../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import { PageQuery, pageReply } from "../../kernel/http/page.ts";
import { refuseOneProject } from "../../kernel/messages/refusal.ts";
import { identityOf } from "../access-identity.ts";
import { personWhoAsks } from "../callers.ts";
import { findInvitation, invitationViewOf, listInvitations } from "../queries/invitations.ts";
import { findMember, listMembers, personViewOf } from "../queries/people.ts";
import type { AccountsService } from "../service.ts";
import {
  AcceptedInvitation,
  AcceptRequest,
  CreatedInvitation,
  InvitationList,
  InvitationRequest,
  PersonList,
  PersonPatch,
  PersonView,
} from "../wire.ts";
import { joinReply } from "./join-page.ts";

const service = serviceOf<AccountsService>("accounts");

const PEOPLE = "/v1/people";
const INVITATIONS = "/v1/invitations";

export const peopleOperations: readonly Operation[] = [
  {
    id: "getJoinPage",
    route: "GET /join",
    permission: "anybody",
    summary: "Open the page for accepting an invitation",
    description:
      "An invitation's `url` points here, with the token after the `#`, which browsers do not send. When the person accepts, the page posts the token to `/v1/invitations/accept`.",
    reply: {
      description: "Self-contained HTML",
      contentType: "text/html",
      schema: null,
      example: "<!doctype html>…",
    },
    handle: joinReply,
  },
  {
    id: "listPeople",
    route: `GET ${PEOPLE}`,
    permission: "admin",
    reach: "organization",
    summary: "List the people of your organisation",
    query: PageQuery,
    reply: { description: "One page of people, in the order they became members", schema: PersonList },
    handle: listPeople,
  },
  {
    id: "updatePerson",
    route: `PATCH ${PEOPLE}/{id}`,
    permission: "admin",
    reach: "organization",
    summary: "Change the role of a person",
    description:
      "Their keys follow within 5 seconds. Keys that they created for programs are revoked if they have more permissions than the new role, and their invitations are revoked if it may not invite. The only owner cannot be changed: `conflict`.",
    body: { schema: PersonPatch },
    reply: { description: "The changed person", schema: PersonView, example: { role: "developer" } },
    errors: ["conflict"],
    handle: changeOne,
  },
  {
    id: "deletePerson",
    route: `DELETE ${PEOPLE}/{id}`,
    permission: "admin",
    reach: "organization",
    summary: "End a person's membership",
    description:
      "Their keys in the organisation are revoked, including those that they created for programs. Invitations from them or for them are revoked. The only owner cannot be removed: `conflict`.",
    reply: {
      description: "The membership has ended",
      schema: Deleted,
      example: { object: "person", id: EXAMPLE.person },
    },
    errors: ["conflict"],
    handle: removeOne,
  },
  {
    id: "createInvitation",
    route: `POST ${INVITATIONS}`,
    permission: "admin",
    reach: "organization",
    summary: "Invite a person; the link is shown only once",
    description:
      "The token lets anybody become a member, once, within 7 days; `url` is a page for that. The member is a new person, unless a known person with the invited address accepts. No e-mail is sent.",
    headers: {
      "Idempotency-Key":
        "a repeat with the same key and body creates nothing, and its reply lacks the token and the link, which are shown only once",
    },
    body: { schema: InvitationRequest },
    reply: { status: 201, description: "The invitation", schema: CreatedInvitation, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: invite,
  },
  {
    id: "listInvitations",
    route: `GET ${INVITATIONS}`,
    permission: "admin",
    reach: "organization",
    summary: "List invitations, including expired and accepted ones",
    query: PageQuery,
    reply: { description: "One page of invitations, without their tokens", schema: InvitationList },
    handle: listInvited,
  },
  {
    id: "acceptInvitation",
    route: `POST ${INVITATIONS}/accept`,
    permission: "anybody",
    reach: "organization",
    summary: "Accept an invitation: become a member and get a key",
    description:
      "It needs no key: without one, the caller becomes a new person. With a key or session of a person with the invited address, or if Cloudflare Access confirms the address, that person becomes the member; an existing member keeps the role. The key in the reply has the permissions of the role, in every project.",
    headers: { "Idempotency-Key": "accepted but not needed: an invitation is used once" },
    body: { schema: AcceptRequest },
    reply: {
      status: 201,
      description: "The person, and their key, which is shown only once",
      schema: AcceptedInvitation,
    },
    errors: ["unknown_field", "not_found", "forbidden", "conflict", "storage_full"],
    handle: accept,
  },
  {
    id: "deleteInvitation",
    route: `DELETE ${INVITATIONS}/{id}`,
    permission: "admin",
    reach: "organization",
    summary: "Revoke an invitation",
    description: "For an accepted invitation only the entry is deleted: the person stays a member.",
    reply: {
      description: "Deleted",
      schema: Deleted,
      example: { object: "invitation", id: EXAMPLE.invitation },
    },
    handle: takeBack,
  },
];

async function listPeople(context: ApiContext): Promise<Response> {
  const [database, orgId] = wholeOrganization(context);
  const pages = {
    find: (id: string) => findMember(database, orgId, id),
    list: (page: Parameters<typeof listMembers>[2]) => listMembers(database, orgId, page),
  };
  return await pageReply(context, "a person", pages, personViewOf);
}

async function listInvited(context: ApiContext): Promise<Response> {
  const [database, orgId] = wholeOrganization(context);
  const pages = {
    find: (id: string) => findInvitation(database, orgId, id),
    list: (page: Parameters<typeof listInvitations>[2]) => listInvitations(database, orgId, page),
  };
  return await pageReply(context, "an invitation", pages, invitationViewOf);
}

/** Refuses a key of one project. */
function wholeOrganization({ env, var: { caller } }: ApiContext): [Database, string] {
  const refused = refuseOneProject(caller);
  if (refused !== null) unwrap(refused);
  return [databaseOf(env), caller.orgId];
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, PersonPatch);
  const {
    env,
    var: { caller, now },
  } = context;
  return context.json(unwrap(await service(context).changePerson(env, caller, pathParam(context, "id"), patch, now())));
}

async function removeOne(context: ApiContext): Promise<Response> {
  const {
    env,
    var: { caller, now },
  } = context;
  const { id } = unwrap(await service(context).removePerson(env, caller, pathParam(context, "id"), now()));
  return context.json({ object: "person", id, deleted: true });
}

async function invite(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, InvitationRequest);
  const made = await service(context).createInvitation(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: INVITATIONS, status: 201 }, value, replayed);
}

async function accept(context: ApiContext): Promise<Response> {
  const request = await readBody(context, AcceptRequest);
  const {
    env,
    var: { now },
  } = context;
  const identity = await identityOf(env, context.req.raw, now());
  const by = { person: await personWhoAsks(context), address: identity?.email ?? null };
  const accepted = unwrap(await service(context).acceptInvitation(env, request, by, now()));
  const { organization, person, key } = accepted;
  await logDone(context, organization.id, { who: person.id, action: "acceptInvitation", made: key.id });
  return context.json(accepted, 201);
}

async function takeBack(context: ApiContext): Promise<Response> {
  const {
    env,
    var: { caller },
  } = context;
  const { id } = unwrap(await service(context).takeBackInvitation(env, caller, pathParam(context, "id")));
  return context.json({ object: "invitation", id, deleted: true });
}
