/**
 * The registry of published environments for npm clients. A client escapes the slash of a name in most requests, and some
 * proxies undo that, so both forms are served.
 */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { Flag } from "../contract/primitives.ts";
import { TagName } from "../contract/published-environment.ts";
import { readBody, readQuery } from "../kernel/http/answer.ts";
import { unwrap } from "../kernel/http/errors.ts";
import { jsonBody, parseAs, readingToEnd, refuseLongerThan, refuseOtherTypes } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf, viewerOf } from "../kernel/http/operation.ts";
import {
  AnyPackument,
  NPM_REFUSALS,
  NpmDocument,
  NpmDone,
  NpmPing,
  NpmTags,
  NpmUser,
  NpmVersionNumber,
  shortened,
} from "./npm-format.ts";

const PATH = "/npm";
const TOO_LARGE = `a publication has at most ${LIMITS.publishedNpmBytes} bytes`;
const SHORT = "application/vnd.npm.install-v1+json";
/** Up to 500 versions are read and written as JSON, 2 KiB each. */
const PACKUMENT_COST_MS = 20;
/** Up to 7 MiB of JSON with base64. */
const PUBLICATION_COST_MS = 100;
const WriteQuery = z.strictObject({ write: Flag.describe("sent by `npm deprecate`; it changes nothing") });

const service = serviceOf<typeof import("./npm.ts")>("npm");
const hub = serviceOf<typeof import("./service.ts")>("hub");

const readable = { permission: "environments:read", keyless: true, refusals: NPM_REFUSALS } as const;
const writable = { permission: "environments:write", refusals: NPM_REFUSALS } as const;

function readPackage(id: string, path: string): Operation {
  return {
    ...{ id, route: `GET ${PATH}/${path}`, ...readable, costMs: PACKUMENT_COST_MS },
    summary: "Read the versions and tags of a package",
    description: `With \`Accept: ${SHORT}\`, what an installation needs.`,
    query: WriteQuery,
    reply: { description: "The package", schema: AnyPackument },
    handle: async (context) => {
      readQuery(context, WriteQuery);
      const address = new URL(context.req.url).origin + PATH;
      const read = await service(context).readPackument(context.env, viewerOf(context), nameOf(context), address);
      const packument = unwrap(read);
      const isShort = context.req.header("accept")?.includes(SHORT) === true;
      const headers = { "cache-control": "private, no-cache", vary: "accept" };
      return context.json(isShort ? shortened(packument) : packument, 200, headers);
    },
  };
}

function putPackage(id: string, path: string): Operation {
  return {
    ...{ id, route: `PUT ${PATH}/${path}`, ...writable, costMs: PUBLICATION_COST_MS },
    summary: "Publish a version, or deprecate versions",
    description:
      "`npm publish` and `npm deprecate` send it. A publication is checked and validated as by `POST /v1/environments`.",
    body: { schema: NpmDocument },
    reply: { status: 201, description: "Done", schema: NpmDone, example: { ok: true } },
    errors: ["conflict"],
    handle: (context) => {
      refuseLongerThan(context.req.raw, LIMITS.publishedNpmBytes, TOO_LARGE);
      return readingToEnd(context, receiveDocument, LIMITS.publishedNpmBytes);
    },
  };
}

async function receiveDocument(context: ApiContext): Promise<Response> {
  const { env, req } = context;
  const { scope, caller, now, stillAllowed: allowed } = context.var;
  refuseOtherTypes(req.raw);
  const limit = { bytes: LIMITS.publishedNpmBytes, message: TOO_LARGE };
  const bytes = unwrap(await hub(context).receive(env, scope, req.raw.body, limit, now()));
  const document = parseAs(NpmDocument, jsonBody(bytes));
  const name = nameOf(context);
  if (document._attachments === undefined) {
    unwrap(await service(context).deprecate(env, scope, name, document));
    return context.json({ ok: true }, 201);
  }
  const options = { now: now(), by: caller.who, allowed };
  const { version } = unwrap(await service(context).publishFromNpm(env, scope, name, document, options));
  context.header("location", `/v1/environments/${encodeURIComponent(version.id)}`);
  return context.json({ ok: true, id: version.id }, 201);
}

function listTags(id: string, name: string): Operation {
  return {
    ...{ id, route: `GET ${PATH}/-/package/${name}/dist-tags`, ...readable },
    summary: "List the tags of a package",
    reply: { description: "Versions by tag", schema: NpmTags },
    handle: async (context) =>
      context.json(unwrap(await service(context).readTags(context.env, viewerOf(context), nameOf(context)))),
  };
}

function moveTag(id: string, name: string): Operation {
  return {
    ...{ id, route: `PUT ${PATH}/-/package/${name}/dist-tags/{tag}`, ...writable },
    summary: "Point a tag to a version",
    body: { schema: NpmVersionNumber },
    reply: { status: 201, description: "Done", schema: NpmDone, example: { ok: true } },
    errors: ["conflict"],
    handle: async (context) => {
      const version = await readBody(context, NpmVersionNumber);
      const wanted = { tag: tagOf(context), version, now: context.var.now() };
      unwrap(await hub(context).moveTag(context.env, context.var.scope, ownNameOf(context), wanted));
      return context.json({ ok: true }, 201);
    },
  };
}

function deleteTag(id: string, name: string): Operation {
  return {
    ...{ id, route: `DELETE ${PATH}/-/package/${name}/dist-tags/{tag}`, ...writable },
    summary: "Delete a tag",
    reply: { description: "Done", schema: NpmDone, example: { ok: true } },
    errors: ["conflict"],
    handle: async (context) => {
      const { scope } = context.var;
      unwrap(await hub(context).removeTag(context.env, scope, ownNameOf(context), tagOf(context)));
      return context.json({ ok: true });
    },
  };
}

function readTarball(id: string, name: string): Operation {
  return {
    ...{ id, route: `GET ${PATH}/${name}/-/{file}`, ...readable },
    summary: "Read the package of a version",
    reply: {
      description: "The .tgz file",
      contentType: "application/gzip",
      schema: z.string().describe("bytes of the file"),
      example: "…",
    },
    handle: async (context) => {
      const file = pathParam(context, "file");
      const read = await service(context).readTarball(context.env, viewerOf(context), nameOf(context), file);
      const { body, bytes, etag, changes } = unwrap(read);
      return context.body(body, 200, {
        "content-type": "application/gzip",
        ...(bytes !== null && { "content-length": String(bytes) }),
        "cache-control": changes ? "private, no-cache" : "private, max-age=31536000, immutable",
        etag,
      });
    },
  };
}

export const npmOperations: readonly Operation[] = [
  {
    id: "pingNpm",
    route: `GET ${PATH}/-/ping`,
    permission: "anybody",
    summary: "Check that the registry is up",
    reply: { description: "It is up", schema: NpmPing },
    handle: (context) => context.json({}),
  },
  {
    id: "logOutNpm",
    route: `DELETE ${PATH}/-/user/token/{token}`,
    permission: "anybody",
    refusals: NPM_REFUSALS,
    summary: "Accept `npm logout`",
    description: "npm then removes the key from .npmrc. The key stays valid until it is revoked.",
    reply: { description: "Done", schema: NpmDone, example: { ok: true } },
    // npm prints the address of a request that is refused, and the key is in it.
    handle: (context) => context.json({ ok: true }),
  },
  {
    id: "whoAmINpm",
    route: `GET ${PATH}/-/whoami`,
    permission: "caller",
    reach: "organization",
    refusals: NPM_REFUSALS,
    summary: "Read whose key it is",
    reply: { description: "The id of the key or the person", schema: NpmUser, example: { username: "key_…" } },
    errors: ["forbidden"],
    handle: (context) => context.json({ username: context.var.caller.who }),
  },
  listTags("listNpmTags", "{id}"),
  listTags("listScopedNpmTags", "{scope}/{id}"),
  moveTag("moveNpmTag", "{id}"),
  moveTag("moveScopedNpmTag", "{scope}/{id}"),
  deleteTag("deleteNpmTag", "{id}"),
  deleteTag("deleteScopedNpmTag", "{scope}/{id}"),
  readPackage("getNpmPackage", "{id}"),
  readPackage("getScopedNpmPackage", "{scope}/{id}"),
  putPackage("putNpmPackage", "{id}"),
  putPackage("putScopedNpmPackage", "{scope}/{id}"),
  readTarball("getNpmTarball", "{id}"),
  readTarball("getScopedNpmTarball", "{scope}/{id}"),
];

/** `@owner/name`. */
function nameOf(context: ApiContext): string {
  const [scope, name] = [pathParam(context, "scope"), pathParam(context, "id")];
  return scope === "" ? name : `${scope}/${name}`;
}

/** `owner/name`. */
function ownNameOf(context: ApiContext): string {
  return nameOf(context).replace(/^@/, "");
}

function tagOf(context: ApiContext): string {
  return parseAs(TagName, pathParam(context, "tag"));
}
