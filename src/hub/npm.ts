/**
 * Published environments as npm clients read and publish them. `viewer`: null for a stranger.
 *
 * npm has no yank. A yanked version has a deprecation text, and no tag points to it, so npm chooses it for a range only if
 * no other version fits. A version that was taken down is not there.
 */

import type { LibraryListing } from "../contract/library-file.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Visibility } from "../contract/published-environment.ts";
import { nameKeyOf } from "../contract/published-environment.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { filesOf } from "./files.ts";
import { findNamed } from "./find-version.ts";
import { type NpmDocument, type Packument, type PackumentVersion, YANKED } from "./npm-format.ts";
import { readLibrary, readLibraryTarball } from "./npm-library.ts";
import { installedPart } from "./package-format.ts";
import type { Published, PublishOptions } from "./publish.ts";
import {
  deprecateVersions,
  findPublished,
  getVersion,
  type ListedVersion,
  listedVersions,
  tagsOf,
  versionsOf,
} from "./queries.ts";
import { findOwn, publishBytes } from "./service.ts";
import type { HubEnvironmentRow } from "./tables.ts";
import { chooseVersion, LATEST } from "./version-names.ts";

/** `@owner/name` without its `@`; null if it is not such a name. */
export function publishedNameOf(name: string): string | null {
  return /^@([^@/]+\/[^@/]+)$/.exec(name)?.[1] ?? null;
}

interface Shelf {
  readonly environment: HubEnvironmentRow;
  /** The oldest first. */
  readonly versions: readonly ListedVersion[];
  /** Versions by their tags, without those that npm must not choose. */
  readonly tags: Readonly<Record<string, string>>;
}

/** Null also for another spelling, which npm takes for another package. */
async function findPackage(env: Env, viewer: Scope | null, name: string): Promise<HubEnvironmentRow | null> {
  const published = publishedNameOf(name);
  const found = published === null ? null : await findNamed(env, viewer, published);
  const isPackage = found?.environment.name === published && found?.environment.kind === "javascript";
  return isPackage ? found.environment : null;
}

async function findShelf(env: Env, viewer: Scope | null, name: string): Promise<Result<Shelf>> {
  const environment = await findPackage(env, viewer, name);
  const versions = environment === null ? [] : await listedVersions(databaseOf(env), environment.id);
  const packed = versions.filter(({ npm }) => npm !== null);
  if (environment === null || packed.length === 0) return await noPackage(env, name);
  const tags = tagsAmong(packed, await tagsOf(databaseOf(env), environment.id));
  return { ok: true, value: { environment, versions: packed, tags } };
}

function tagsAmong(
  versions: readonly Pick<ListedVersion, "version" | "yanked_at">[],
  tagged: ReadonlyMap<string, string>,
): Readonly<Record<string, string>> {
  const choices = versions.map(({ version, yanked_at }) => ({ version, yanked: yanked_at !== null }));
  const tags = [LATEST, ...tagged.keys()].flatMap((tag) => {
    const version = chooseVersion(tag, choices, tagged);
    return version === null ? [] : [[tag, version]];
  });
  return Object.fromEntries(tags);
}

async function noPackage(env: Env, name: string): Promise<Result<never>> {
  return refuse("not_found", `no package ${name}: ${await contentsFor(env, name)}`, null);
}

/** What the registry has, for a client that looked for this package. */
async function contentsFor(env: Env, name: string): Promise<string> {
  if (name.startsWith("@")) return "this registry has published environments, @owner/name";
  const library = await readLibrary(env);
  return library === null
    ? "this registry has only published environments, @owner/name. It has the package of Rollcall itself after `npm run package` in the checkout and a new start or deployment"
    : `this registry has only published environments, @owner/name, and ${library.manifest.name}: let npm get other packages from your usual registry, by setting this one for @owner only`;
}

/** `address`: of the registry, such as `https://host/npm`. */
export async function readPackument(
  env: Env,
  viewer: Scope | null,
  name: string,
  address: string,
): Promise<Result<Packument>> {
  const library = await readLibrary(env);
  if (library?.manifest.name === name) return { ok: true, value: packumentOf(library, address) };
  const shelf = await findShelf(env, viewer, name);
  if (!shelf.ok) return shelf;
  const { environment, versions, tags } = shelf.value;
  return {
    ok: true,
    value: {
      ...{ _id: name, name, ...(environment.description !== null && { description: environment.description }) },
      // Organisations have no address.
      maintainers: [{ name: name.slice(1).split("/")[0] ?? "", email: "" }],
      "dist-tags": tags,
      versions: Object.fromEntries(
        versions.map((row) => [row.version, versionOf({ ...row, name, deprecated: adviceOf(row) }, address)]),
      ),
      time: {
        ...{ created: iso(environment.created_at), modified: iso(environment.updated_at) },
        ...Object.fromEntries(versions.map(({ version, created_at }) => [version, iso(created_at)])),
      },
    },
  };
}

/** The library has one version, which is the latest. */
function packumentOf({ manifest, integrity, shasum, made_at: at }: LibraryListing, address: string): Packument {
  const { name, version, description } = manifest;
  const npm = { manifest: installedPart(manifest), integrity, shasum };
  const row = { name, version, description: description ?? null, npm, deprecated: null };
  return {
    ...{ _id: name, name, ...(description !== undefined && { description }) },
    "dist-tags": { [LATEST]: version },
    versions: { [version]: versionOf(row, address) },
    time: { created: iso(at), modified: iso(at), [version]: iso(at) },
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

function tarballName(name: string, version: string): string {
  return `${name.split("/").at(-1)}-${version}.tgz`;
}

type Described = Pick<ListedVersion, "version" | "description" | "npm" | "deprecated"> & { readonly name: string };

/** `deprecated`: what npm shows to people who install it. */
function versionOf({ name, version, description, npm, deprecated }: Described, address: string): PackumentVersion {
  return {
    ...npm?.manifest,
    ...{ _id: `${name}@${version}`, name, version, ...(description !== null && { description }) },
    ...(deprecated !== null && { deprecated }),
    dist: {
      ...{ integrity: npm?.integrity ?? "", shasum: npm?.shasum ?? "" },
      tarball: `${address}/${name}/-/${tarballName(name, version)}`,
    },
  };
}

/** What npm shows who installs the version; null: nothing. */
function adviceOf({ yanked_at, yank_reason, deprecated }: ListedVersion): string | null {
  return yanked_at === null ? deprecated : `${YANKED}${yank_reason}`;
}

export async function readTags(
  env: Env,
  viewer: Scope | null,
  name: string,
): Promise<Result<Readonly<Record<string, string>>>> {
  const library = await readLibrary(env);
  if (library?.manifest.name === name) return { ok: true, value: { [LATEST]: library.manifest.version } };
  const environment = await findPackage(env, viewer, name);
  const versions = environment === null ? [] : await versionsOf(databaseOf(env), environment.id);
  const left = versions.filter(({ taken_down_at }) => taken_down_at === null);
  if (environment === null || left.length === 0) return await noPackage(env, name);
  return { ok: true, value: tagsAmong(left, await tagsOf(databaseOf(env), environment.id)) };
}

export interface Tarball {
  readonly body: ReadableStream;
  readonly etag: string;
  /** Null if it is not known before it is read. */
  readonly bytes: number | null;
  /** Whether this version may get other bytes: that of a checkout, which is packed again. */
  readonly changes: boolean;
}

/** `file`: as in `dist.tarball`. */
export async function readTarball(
  env: Env,
  viewer: Scope | null,
  name: string,
  file: string,
): Promise<Result<Tarball>> {
  const library = await readLibrary(env);
  if (library?.manifest.name === name) return await libraryTarball(env, library, file);
  const published = publishedNameOf(name) ?? "";
  const environment = await findPublished(databaseOf(env), viewer, nameKeyOf(published));
  if (environment === null || environment.name !== published) return await noPackage(env, name);
  const prefix = `${published.split("/")[1]}-`;
  const version = file.startsWith(prefix) && file.endsWith(".tgz") ? file.slice(prefix.length, -".tgz".length) : "";
  const row = await getVersion(databaseOf(env), environment.id, version);
  if (row === null || row.npm === null) return noFile(name, file);
  if (row.taken_down_at !== null) {
    return refuse("not_found", `${name}@${version} was taken down: ${row.take_down_reason}`, null);
  }
  const object = await env.STORE.get(filesOf(environment, row.id).package);
  // An operator may be taking it down.
  return object === null
    ? refuse("not_found", `${name}@${version} has no files any more`, null)
    : { ok: true, value: { body: object.body, etag: object.httpEtag, bytes: object.size, changes: false } };
}

async function libraryTarball(
  env: Env,
  { manifest: { name, version } }: LibraryListing,
  file: string,
): Promise<Result<Tarball>> {
  const reply = file === tarballName(name, version) ? await readLibraryTarball(env) : null;
  if (reply === null || reply.body === null) return noFile(name, file);
  return { ok: true, value: { body: reply.body, etag: reply.headers.get("etag") ?? "", bytes: null, changes: true } };
}

function noFile(name: string, file: string): Result<never> {
  return refuse("not_found", `${name} has no file ${file}`, null);
}

/** What `npm publish` sends: the package of one version, and a tag for it. */
export async function publishFromNpm(
  env: Env,
  scope: Scope,
  name: string,
  { versions, access, "dist-tags": tags = {}, _attachments: files = {} }: NpmDocument,
  options: PublishOptions,
): Promise<Result<Published>> {
  const [[version, manifest] = [], ...otherVersions] = Object.entries(versions);
  const [[file, attachment] = [], ...otherFiles] = Object.entries(files);
  if (version === undefined || otherVersions.length > 0) {
    return refuse("invalid_request", "versions: must have the one version that is published", "versions");
  }
  if (attachment === undefined || otherFiles.length > 0 || !file?.endsWith(".tgz")) {
    const message = "_attachments: must have the .tgz of the version and nothing else: publish without --provenance";
    return refuse("invalid_request", message, "_attachments");
  }
  const bytes = bytesIn(attachment.data);
  if (bytes === null) return refuse("invalid_request", "_attachments: its data is not base64", "_attachments");
  if (bytes.byteLength > LIMITS.publishedBytes) {
    return refuse("too_large", `a package has at most ${LIMITS.publishedBytes} bytes`, null);
  }
  const published = publishedNameOf(name);
  if (published === null) return refuse("invalid_request", `name: must be @owner/name, not ${name}`, "name");
  const [tag = null] = Object.keys(tags).filter((one) => one !== LATEST);
  const visibility = await visibilityOf(env, scope, published, access ?? null);
  const expected = { id: `${published}@${version}`, integrity: manifest?.dist?.integrity };
  return await publishBytes(
    env,
    scope,
    bytes,
    { visibility, allowFailing: false, tag, latest: LATEST in tags, expected },
    options,
  );
}

/** `restricted` agrees with both `private` and `organisation`. */
async function visibilityOf(
  env: Env,
  scope: Scope,
  name: string,
  access: NonNullable<NpmDocument["access"]> | null,
): Promise<Visibility | null> {
  if (access !== "restricted") return access;
  const known = await findPublished(databaseOf(env), scope, nameKeyOf(name));
  return known?.visibility === "organisation" ? null : "private";
}

function bytesIn(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    return bytes;
  } catch (thrown) {
    if (thrown instanceof DOMException) return null;
    throw thrown;
  }
}

/** What `npm deprecate` sends: the whole packument, in which texts have changed. An empty text removes one. */
export async function deprecate(
  env: Env,
  scope: Scope,
  name: string,
  { versions }: NpmDocument,
): Promise<Result<object>> {
  const own = await findOwn(env, scope, publishedNameOf(name) ?? name);
  if (!own.ok) return own;
  const changes = new Map<string, string | null>();
  for (const row of await listedVersions(databaseOf(env), own.value.environment.id)) {
    const text = versions[row.version]?.deprecated;
    // A yank may be undone between what npm read and what it sends.
    if (text === undefined || text.startsWith(YANKED)) continue;
    if (text !== (adviceOf(row) ?? "")) changes.set(row.id, text === "" ? null : text);
  }
  await deprecateVersions(databaseOf(env), scope.orgId, changes);
  return { ok: true, value: { ok: true } };
}
