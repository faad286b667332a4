/** Routes for published environments. Those that only name an environment are in the kernel: http/environments.ts. */
import * as z from "zod";
import { Deleted } from "../contract/endpoint.ts";
import { LIMITS } from "../contract/limits.ts";
import { mediaTypeOf } from "../contract/media-type.ts";
import { Flag, PageLimit } from "../contract/primitives.ts";
import {
  GrantRequest,
  GrantView,
  PublishedOwner,
  PublishedVersion,
  PublishedVersionList,
  PublishedVersionPatch,
  TagName,
  TagRequest,
  TagView,
  TakeDownRequest,
  Visibility,
} from "../contract/published-environment.ts";
import { CREATED_HEADERS, creationReply, readBody, readQuery } from "../kernel/http/answer.ts";
import { Refusal, unwrap } from "../kernel/http/errors.ts";
import { idempotencyKeyOf, parseAs, readingToEnd, refuseEncoded, refuseLongerThan } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { pageOf } from "../kernel/http/page.ts";

const PATH = "/v1/environments";
const ONE = `${PATH}/{id}`;
const NAMED = "`id` is `owner/name`, with the slash as %2F";
const TOO_LARGE = `a package has at most ${LIMITS.publishedBytes} bytes`;

const PublishQuery = z.strictObject({
  visibility: Visibility.optional().describe("of a new environment; `private` if absent. It does not change"),
  allow_failing: Flag.describe("publish it although its validation finds errors"),
  tag: TagName.optional().describe("a tag to move to this version, besides `latest`"),
  owner: PublishedOwner.optional().describe("of a wheel, which does not name it; the organisation's name if absent"),
  file: z
    .string()
    .max(200)
    .optional()
    .describe("of a wheel: its file name")
    .meta({ example: "guess_word-1.0.1-py3-none-any.whl" }),
});
const VersionsQuery = z.strictObject({
  after: z
    .string()
    .max(LIMITS.publishedNameCharacters)
    .optional()
    .describe("id of the last version of the previous page"),
  limit: PageLimit.transform((limit) => Math.min(limit, LIMITS.publishedPerPage)).describe("a page has at most 20"),
});

const service = serviceOf<typeof import("./service.ts")>("hub");

export const hubOperations: readonly Operation[] = [
  {
    id: "publishEnvironment",
    route: `POST ${PATH}`,
    permission: "environments:write",
    summary: "Publish a version of an environment: an npm package with its code, or a wheel",
    description:
      "`rollcall env publish` makes the package. Its code is loaded in an isolate of its own and played by simple policies; if that finds errors, it is refused. A version never changes: the same code again returns the version that exists, and other code is a conflict. A Python environment is a wheel: it is checked but not played.",
    query: PublishQuery,
    headers: { "Idempotency-Key": "accepted but not needed: a version is published once" },
    body: {
      schema: z.string().describe("bytes of the .tgz or .whl file"),
      example: "…",
      contentType: "application/octet-stream",
    },
    reply: { status: 201, description: "The version", schema: PublishedVersion, headers: CREATED_HEADERS },
    errors: ["conflict", "forbidden", "rate_limited"],
    handle: (context) => {
      refuseLongerThan(context.req.raw, LIMITS.publishedBytes, TOO_LARGE);
      return readingToEnd(context, receivePackage, LIMITS.publishedBytes);
    },
  },
  {
    id: "listEnvironmentVersions",
    route: `GET ${ONE}/versions`,
    permission: "environments:read",
    summary: "List the versions of a published environment, the newest first",
    description: NAMED,
    query: VersionsQuery,
    reply: { description: "One page of versions", schema: PublishedVersionList },
    handle: async (context) => {
      const { after, limit } = readQuery(context, VersionsQuery);
      const list = service(context).listVersions;
      const versions = await list(context.env, context.var.scope, idOf(context), { after: after ?? null, limit });
      return context.json(pageOf(unwrap(versions), limit));
    },
  },
  {
    id: "getEnvironmentPackage",
    route: `GET ${ONE}/package`,
    permission: "environments:read",
    summary: "Read the package of a published version",
    description: `${NAMED}; without a version it is the newest.`,
    reply: {
      description: "The .tgz file, or the wheel of a Python environment",
      contentType: "application/gzip",
      schema: z.string().describe("bytes of the file"),
      example: "…",
      otherwise: { "application/octet-stream": { description: "bytes of the wheel", example: "…" } },
    },
    handle: (context) => fileReply(context, "package"),
  },
  {
    id: "getEnvironmentReadme",
    route: `GET ${ONE}/readme`,
    permission: "environments:read",
    summary: "Read the README of a published version, as Markdown",
    description: `${NAMED}; without a version it is the newest.`,
    reply: { description: "The text", contentType: "text/plain", schema: z.string(), example: "# guess-word\n" },
    handle: (context) => fileReply(context, "readme"),
  },
  {
    id: "updateEnvironmentVersion",
    route: `PATCH ${ONE}`,
    permission: "environments:write",
    summary: "Yank or deprecate a version, or undo it: only the given fields",
    description: `${NAMED}, and names one version. Ranges and tags skip a yanked version. A run that names it exactly is still accepted, and all runs that use it continue.`,
    body: { schema: PublishedVersionPatch },
    reply: { description: "The version", schema: PublishedVersion },
    urgent: true,
    handle: async (context) => {
      const patch = await readBody(context, PublishedVersionPatch);
      const { scope, now } = context.var;
      return context.json(
        unwrap(await service(context).changeVersion(context.env, scope, idOf(context), patch, now())),
      );
    },
  },
  {
    id: "moveEnvironmentTag",
    route: `PUT ${ONE}/tags/{tag}`,
    permission: "environments:write",
    summary: "Point a tag of a published environment to a version",
    description: NAMED,
    body: { schema: TagRequest },
    reply: { description: "The tag", schema: TagView },
    errors: ["conflict"],
    handle: async (context) => {
      const { version } = await readBody(context, TagRequest);
      const tag = parseAs(TagName, pathParam(context, "tag"));
      const wanted = { tag, version, now: context.var.now() };
      return context.json(
        unwrap(await service(context).moveTag(context.env, context.var.scope, idOf(context), wanted)),
      );
    },
  },
  {
    id: "deleteEnvironmentTag",
    route: `DELETE ${ONE}/tags/{tag}`,
    permission: "environments:write",
    summary: "Delete a tag of a published environment",
    description: NAMED,
    reply: { description: "Deleted", schema: Deleted, example: { object: "environment_tag", id: "beta" } },
    errors: ["conflict"],
    handle: async (context) => {
      const tag = parseAs(TagName, pathParam(context, "tag"));
      const id = unwrap(await service(context).removeTag(context.env, context.var.scope, idOf(context), tag));
      return context.json({ object: "environment_tag", id, deleted: true });
    },
  },
  {
    id: "getEnvironmentGrant",
    route: `GET ${ONE}/grant`,
    permission: "environments:read",
    summary: "Read what the project lets a published environment use",
    description: NAMED,
    reply: { description: "The grant", schema: GrantView },
    handle: async (context) =>
      context.json(unwrap(await service(context).readGrant(context.env, context.var.scope, idOf(context)))),
  },
  {
    id: "setEnvironmentGrant",
    route: `PUT ${ONE}/grant`,
    permission: "secrets:write",
    summary: "Let an environment of another organisation use secrets and hosts of the project",
    description: `${NAMED}. It replaces what was granted before, and holds for all versions: a version that needs more is refused until that is granted, too. Runs that have started keep what they had.`,
    body: { schema: GrantRequest },
    reply: { description: "The grant", schema: GrantView },
    handle: async (context) => {
      const { needs } = await readBody(context, GrantRequest);
      const { scope, caller, now } = context.var;
      const grant = { needs, by: caller.who, now: now() };
      return context.json(unwrap(await service(context).changeGrant(context.env, scope, idOf(context), grant)));
    },
  },
  {
    id: "takeDownEnvironmentVersion",
    route: `POST ${ONE}/take-down`,
    permission: "operator",
    reach: "organization",
    summary: "Delete the code of a published version",
    description: `${NAMED}, and names one version. Its digest, its validation and the results of runs stay; runs that still use it fail.`,
    headers: { "Idempotency-Key": "accepted but not needed: a repeat changes nothing" },
    body: { schema: TakeDownRequest },
    reply: { description: "The version", schema: PublishedVersion },
    urgent: true,
    handle: async (context) => {
      const { reason } = await readBody(context, TakeDownRequest);
      const now = context.var.now();
      return context.json(unwrap(await service(context).takeDown(context.env, idOf(context), { reason, now })));
    },
  },
];

function idOf(context: ApiContext): string {
  return pathParam(context, "id");
}

async function receivePackage(context: ApiContext): Promise<Response> {
  const { raw } = context.req;
  idempotencyKeyOf(raw);
  const { visibility = null, allow_failing, tag = null, owner, file } = readQuery(context, PublishQuery);
  const type = mediaTypeOf(raw.headers.get("content-type"));
  if (!["application/octet-stream", "application/gzip", "application/x-gzip"].includes(type)) {
    const message = "send the package as content-type: application/octet-stream";
    throw new Refusal({ code: "invalid_request", message, param: null }, { status: 415 });
  }
  refuseEncoded(raw);
  const { scope, caller, now, stillAllowed } = context.var;
  const wheel = { owner: owner ?? null, file: file ?? null };
  const publication = { visibility, allowFailing: allow_failing, tag, ...wheel };
  const options = { now: now(), by: caller.who, allowed: stillAllowed };
  const { publishPackage } = service(context);
  const { version, replayed } = unwrap(await publishPackage(context.env, scope, raw.body, publication, options));
  const id = encodeURIComponent(version.id);
  const reply = creationReply(context, { folder: PATH, status: 201 }, version, replayed);
  reply.headers.set("location", `${PATH}/${id}`);
  return reply;
}

async function fileReply(context: ApiContext, file: "package" | "readme"): Promise<Response> {
  const read = await service(context).readFile(context.env, context.var.scope, idOf(context), file);
  const { object, version } = unwrap(read);
  if (object === null) {
    throw new Refusal({ code: "not_found", message: `${version.id} has no ${file}`, param: "id" });
  }
  const archive = version.kind === "python" ? "application/octet-stream" : "application/gzip";
  const type = file === "package" ? archive : "text/plain; charset=utf-8";
  const headers = { "content-type": type, etag: object.httpEtag, "content-length": String(object.size) };
  return new Response(object.body, { headers });
}
