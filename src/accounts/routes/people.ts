/** People of an organisation, and the invitations by which they become members. */

import { Deleted } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
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
    summary: "Open the page on which people accept an invitation",
    description:
      "An invitation's `url` leads here, its token behind the `#`, which browsers send to nobody. The page takes the token from there and posts it to `/v1/invitations/accept` when the person says so.",
    reply: {
      description: "HTML that needs no other file",
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
    reply: { description: "One page of people, by the time they became members", schema: PersonList },
    handle: listPeople,
  },
  {
    id: "updatePerson",
    route: `PATCH ${PEOPLE}/{id}`,
    permission: "admin",
    reach: "organization",
    summary: "Give a person another role",
    description:
      "Their keys follow within 5 seconds. Keys that they made for programs are revoked if those may do more than the new role, and invitations that they made are taken back if it may not invite. The only owner stays one: `conflict`.",
    body: { schema: PersonPatch },
    reply: { description: "The person as they are now", schema: PersonView, example: { role: "developer" } },
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
      "Their keys in the organisation are revoked, and so are those that they made for programs. Invitations that they made, or that wait for them, are taken back. The only owner stays: `conflict`.",
    reply: { description: "They are no member", schema: Deleted, example: { object: "person", id: EXAMPLE.person } },
    errors: ["conflict"],
    handle: removeOne,
  },
  {
    id: "createInvitation",
    route: `POST ${INVITATIONS}`,
    permission: "admin",
    reach: "organization",
    summary: "Invite a person: the link is shown here and never again",
    description:
      "Whoever has the token becomes a member with it, once, within 7 days; `url` leads to a page that does so. They become a new person unless they prove to be one whom the invitation is addressed to. Nothing is sent by e-mail.",
    headers: {
      "Idempotency-Key":
        "the same key and body again makes nothing, and answers without the token and the link: they were said once and are kept nowhere",
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
    summary: "List invitations, those that have ended among them",
    query: PageQuery,
    reply: { description: "One page of invitations, without their tokens", schema: InvitationList },
    handle: listInvited,
  },
  {
    id: "acceptInvitation",
    route: `POST ${INVITATIONS}/accept`,
    permission: "anybody",
    reach: "organization",
    summary: "Become a member by an invitation, and get a key",
    description:
      "It needs no key. Without one whoever has the token becomes a new person. With a key or a session of a person whose address is the invitation's, or where Cloudflare Access says that the address is theirs, that person becomes the member; one who is a member already keeps the role. The key in the answer may do what the role allows, in every project.",
    headers: { "Idempotency-Key": "accepted and not needed: an invitation is used once" },
    body: { schema: AcceptRequest },
    reply: {
      status: 201,
      description: "The person, and their key, which is shown here and never again",
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
    summary: "Take an invitation back",
    description: "Of one that was accepted only the entry goes: the person stays a member.",
    reply: {
      description: "It is gone",
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

/** Refused to a key of one project. */
function wholeOrganization({ env, var: { caller } }: ApiContext): [D1Database, string] {
  const refused = refuseOneProject(caller);
  if (refused !== null) unwrap(refused);
  return [env.DB, caller.orgId];
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
