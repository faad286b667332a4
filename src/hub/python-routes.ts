/** An index of the Python environments of each owner, for pip and uv. */
import * as z from "zod";
import { nameKeyOf } from "../contract/published-environment.ts";
import { unwrap } from "../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf, viewerOf } from "../kernel/http/operation.ts";
import {
  JSON_TYPE,
  PROJECT_EXAMPLE,
  PROJECTS_EXAMPLE,
  PythonProject,
  PythonProjects,
  prefersJson,
  projectPage,
  projectsPage,
} from "./python-format.ts";

const PATH = "/python/{owner}";
const MOVED = "the name or the address is not in its normal form: `location` has it";
const IMMUTABLE = "private, max-age=31536000, immutable";

const service = serviceOf<typeof import("./python.ts")>("python");
const readable = { permission: "environments:read", keyless: true, basic: true } as const;

export const pythonOperations: readonly Operation[] = [
  {
    ...{ id: "listPythonProjects", route: `GET ${PATH}/simple/`, ...readable },
    summary: "List the Python environments of an owner",
    description: `As JSON for \`Accept: ${JSON_TYPE}\`, or else as HTML.`,
    reply: listReply(PythonProjects, PROJECTS_EXAMPLE, projectsPage(PROJECTS_EXAMPLE)),
    handle: async (context) => {
      const owner = pathParam(context, "owner");
      const projects = unwrap(await service(context).listProjects(context.env, viewerOf(context), owner));
      return answer(context, projects, projectsPage);
    },
  },
  {
    ...{ id: "getPythonProject", route: `GET ${PATH}/simple/{id}/`, ...readable },
    summary: "List the wheels of a Python environment",
    description: `As JSON for \`Accept: ${JSON_TYPE}\`, or else as HTML. This is the address for \`--index-url\`, without the name.`,
    reply: listReply(PythonProject, PROJECT_EXAMPLE, projectPage(PROJECT_EXAMPLE)),
    handle: async (context) => {
      const [owner, name] = [pathParam(context, "owner"), pathParam(context, "id")];
      if (nameKeyOf(name) !== name) return movedReply(context);
      const project = unwrap(await service(context).readProject(context.env, viewerOf(context), owner, name));
      return answer(context, project, projectPage);
    },
  },
  {
    ...{ id: "findPythonProject", route: `GET ${PATH}/simple/{id}`, permission: "anybody" },
    summary: "Find the list of the wheels of a Python environment",
    reply: listReply(PythonProject, PROJECT_EXAMPLE, projectPage(PROJECT_EXAMPLE)),
    handle: movedReply,
  },
  {
    ...{ id: "getPythonFile", route: `GET ${PATH}/files/{file}`, ...readable },
    summary: "Read a wheel, or with `.metadata` after its name, its METADATA",
    reply: {
      description: "The file",
      contentType: "application/octet-stream",
      schema: z.string().describe("bytes of the file"),
      example: "…",
    },
    handle: async (context) => {
      const [owner, file] = [pathParam(context, "owner"), pathParam(context, "file")];
      const object = unwrap(await service(context).readFile(context.env, viewerOf(context), owner, file));
      return context.body(object.body, 200, {
        "content-type": "application/octet-stream",
        "content-length": String(object.size),
        "cache-control": IMMUTABLE,
        etag: object.httpEtag,
      });
    },
  },
];

function listReply(schema: z.ZodType, example: object, html: string): Operation["reply"] {
  const otherwise = { "text/html": { description: "the same as links", example: html } };
  return { description: "The list", contentType: JSON_TYPE, schema, example, otherwise, moved: MOVED };
}

function answer<T extends object>(context: ApiContext, value: T, pageOf: (value: T) => string): Response {
  const headers = { "cache-control": "private, no-cache", vary: "accept" };
  return prefersJson(context.req.header("accept") ?? "")
    ? context.body(JSON.stringify(value), 200, { ...headers, "content-type": JSON_TYPE })
    : context.body(pageOf(value), 200, { ...headers, "content-type": "text/html; charset=utf-8" });
}

function movedReply(context: ApiContext): Response {
  const [owner, name] = [pathParam(context, "owner"), nameKeyOf(pathParam(context, "id"))].map(encodeURIComponent);
  return context.body(null, 301, { location: `/python/${owner}/simple/${name}/` });
}
