/** Routes for projects: create, list, read, change. */

import { databaseOf } from "../../kernel/db/database.ts";
import {
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
} from "../../kernel/http/answer.ts";
import { unwrap } from "../../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import { PageQuery, pageReply } from "../../kernel/http/page.ts";
import { findProject, listProjects, projectViewOf } from "../queries/projects.ts";
import type { AccountsService } from "../service.ts";
import { ProjectList, ProjectPatch, ProjectRequest, ProjectView } from "../wire.ts";
import { rowOfOrganization } from "./row-of-organization.ts";

const service = serviceOf<AccountsService>("accounts");

const FOLDER = "/v1/projects";
const ONE = `${FOLDER}/{id}`;

export const projectOperations: readonly Operation[] = [
  {
    id: "createProject",
    route: `POST ${FOLDER}`,
    permission: "admin",
    reach: "organization",
    summary: "Create a project",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: ProjectRequest },
    reply: { status: 201, description: "The project", schema: ProjectView, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listProjects",
    route: `GET ${FOLDER}`,
    permission: "runs:read",
    reach: "organization",
    summary: "List the projects that the key can access",
    query: PageQuery,
    reply: { description: "One page of projects", schema: ProjectList },
    handle: listAll,
  },
  {
    id: "getProject",
    route: `GET ${ONE}`,
    permission: "runs:read",
    reach: "organization",
    summary: "Read a project, by id or name",
    reply: { description: "The project", schema: ProjectView },
    handle: async (context) => context.json(projectViewOf(await rowOfOrganization(context, "project", findProject))),
  },
  {
    id: "updateProject",
    route: `PATCH ${ONE}`,
    permission: "admin",
    reach: "organization",
    summary: "Change the name or retention of a project",
    description: "By id or name. Only the given fields change, also in `retention`; null there keeps data for good.",
    body: { schema: ProjectPatch, example: { retention: { runs_days: 30 } } },
    reply: {
      description: "The changed project",
      schema: ProjectView,
      example: { retention: { runs_days: 30 } },
    },
    errors: ["conflict"],
    handle: changeOne,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, ProjectRequest);
  const made = await service(context).createProject(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const [database, caller] = [databaseOf(context.env), context.var.caller];
  const pages = {
    find: (id: string) => findProject(database, caller, id),
    list: (page: Parameters<typeof listProjects>[2]) => listProjects(database, caller, page),
  };
  return await pageReply(context, "a project", pages, projectViewOf);
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, ProjectPatch);
  const {
    env,
    var: { caller },
  } = context;
  return context.json(unwrap(await service(context).changeProject(env, caller, pathParam(context, "id"), patch)));
}
