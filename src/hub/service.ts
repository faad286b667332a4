/** What the routes of published environments do, besides publishing. `id`: `owner/name`, with a version where one is meant. */
import { LIMITS } from "../contract/limits.ts";
import {
  type GrantView,
  nameKeyOf,
  type PublishedVersion,
  type PublishedVersionPatch,
} from "../contract/published-environment.ts";
import type { Scope } from "../contract/scope.ts";
import { withUploadMemory } from "../kernel/dataset/store-rows.ts";
import { type Body, bytesOf, refusalOfBody } from "../kernel/dataset/upload.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { outlive } from "../kernel/kit/outlive.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { withinUploads } from "../kernel/service/limits.ts";
import { announce } from "./announce.ts";
import { filesOf } from "./files.ts";
import { findNamed, findVersion, type NamedEnvironment } from "./find-version.ts";
import { type Publication, type Published, type PublishOptions, publish } from "./publish.ts";
import {
  deleteTag,
  getGrant,
  getPinned,
  getVersion,
  pageOfVersions,
  publishedViewOf,
  setGrant,
  setTag,
  tagsOf,
  updateVersion,
  type VersionChanges,
} from "./queries.ts";
import type { HubVersionRow } from "./tables.ts";
import { exactVersion, LATEST } from "./version-names.ts";

const TOO_LARGE = `a package has at most ${LIMITS.publishedBytes} bytes`;

/** Publications in this isolate: few at once, as each is played for up to a minute, and half of them of one organisation. */
const publishing = new Set<{ readonly orgId: string; readonly begun: number }>();
const MOST_PUBLISHING = 4;
/** Longer than a publication: one whose invocation was killed does not count any more. */
const PUBLISHING_MS = 10 * 60_000;

export async function publishPackage(
  env: Env,
  scope: Scope,
  body: Body,
  publication: Publication,
  options: PublishOptions,
): Promise<Result<Published>> {
  const most = { bytes: LIMITS.publishedBytes, message: TOO_LARGE };
  const received = await receive(env, scope, body, most, options.now);
  return received.ok ? await publishBytes(env, scope, received.value, publication, options) : received;
}

/** The same for a package that has been received. */
export async function publishBytes(
  env: Env,
  scope: Scope,
  bytes: Uint8Array<ArrayBuffer>,
  publication: Publication,
  options: PublishOptions,
): Promise<Result<Published>> {
  const { orgId } = scope;
  if (!(await options.allowed())) {
    return refuse("unauthorized", "this key lost its permission during the upload", null);
  }
  for (const other of publishing) if (other.begun + PUBLISHING_MS < Date.now()) publishing.delete(other);
  const own = [...publishing].filter((other) => other.orgId === orgId);
  if (own.length >= MOST_PUBLISHING / 2 || publishing.size >= MOST_PUBLISHING) {
    return refuse("rate_limited", "other versions are being validated: try again in a minute", null);
  }
  const mine = { orgId, begun: Date.now() };
  publishing.add(mine);
  try {
    return await outlive(publish(env, scope, bytes, publication, options));
  } finally {
    publishing.delete(mine);
  }
}

/** The bytes of a body. `now`: epoch milliseconds. */
export async function receive(
  env: Env,
  scope: Scope,
  body: Body,
  limit: { readonly bytes: number; readonly message: string },
  now: number,
): Promise<Result<Uint8Array<ArrayBuffer>>> {
  const read = () =>
    withUploadMemory(env, scope, async (onChunk): Promise<Result<Uint8Array<ArrayBuffer>>> => {
      const pieces: Uint8Array[] = [];
      try {
        for await (const chunk of bytesOf(body, limit, onChunk)) pieces.push(chunk.slice());
      } catch (thrown) {
        return refusalOfBody(thrown);
      }
      return { ok: true, value: await joined(pieces) };
    });
  return await withinUploads(env, scope.orgId, now, read);
}

async function joined(pieces: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Blob(pieces.map((piece) => new Uint8Array(piece))).arrayBuffer());
}

function notPublished(id: string): Result<never> {
  return refuse("not_found", `no published environment ${id}`, "id");
}

export async function findOwn(env: Env, scope: Scope, id: string): Promise<Result<NamedEnvironment>> {
  const value = await findNamed(env, scope, id);
  if (value === null) return notPublished(id);
  if (value.environment.org_id === scope.orgId) return { ok: true, value };
  return refuse("forbidden", `${value.environment.name} belongs to another organisation`, "id");
}

/** The newest first. `after`: id of the last version of the previous page. */
export async function listVersions(
  env: Env,
  scope: Scope,
  id: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<Result<PublishedVersion[]>> {
  const named = await findNamed(env, scope, id);
  if (named === null) return notPublished(id);
  const { environment } = named;
  const from = after === null ? null : await getVersion(databaseOf(env), environment.id, after.split("@")[1] ?? "");
  if (after !== null && from === null) return refuse("not_found", `after: no version ${after}`, "after");
  const [rows, tags] = await Promise.all([
    pageOfVersions(databaseOf(env), environment.id, from, limit + 1),
    tagsOf(databaseOf(env), environment.id),
  ]);
  return { ok: true, value: rows.map((row) => publishedViewOf(environment, row, tags)) };
}

/** The bytes of a file of a version; null if it has no such file. */
export async function readFile(
  env: Env,
  scope: Scope,
  id: string,
  file: "package" | "readme",
): Promise<Result<{ readonly object: R2ObjectBody | null; readonly version: PublishedVersion }>> {
  const named = await findNamed(env, scope, id);
  if (named === null) return notPublished(id);
  const { environment, wanted } = named;
  const found = await findVersion(env, named);
  if (found === null) return refuse("not_found", `${environment.name} has no version ${wanted}`, "id");
  const { row, tags } = found;
  if (row.taken_down_at !== null) {
    return refuse("not_found", `${environment.name}@${row.version} was taken down: ${row.take_down_reason}`, "id");
  }
  const object = await env.STORE.get(filesOf(environment, row.id)[file]);
  return { ok: true, value: { object, version: publishedViewOf(environment, row, tags) } };
}

/** `id` names one version exactly. */
export async function changeVersion(
  env: Env,
  scope: Scope,
  id: string,
  patch: PublishedVersionPatch,
  now: number,
): Promise<Result<PublishedVersion>> {
  const own = await findOwn(env, scope, id);
  if (!own.ok) return own;
  const { environment, wanted } = own.value;
  const version = exactVersion(wanted);
  const row = version === null ? null : await getVersion(databaseOf(env), environment.id, version);
  if (row === null) {
    return refuse("not_found", `id: name one version of ${environment.name}, such as ${environment.name}@1.0.0`, "id");
  }
  const changes = changesOf(row, patch, now);
  if (Object.keys(changes).length > 0) await updateVersion(databaseOf(env), scope.orgId, row.id, changes);
  const shown = publishedViewOf(environment, { ...row, ...changes }, await tagsOf(databaseOf(env), environment.id));
  if (patch.yanked !== undefined && patch.yanked !== null)
    await announce(env, scope.orgId, "environment.yanked", shown, now);
  return { ok: true, value: shown };
}

function changesOf(row: HubVersionRow, { yanked, deprecated }: PublishedVersionPatch, now: number): VersionChanges {
  const yank =
    yanked === null
      ? { yanked_at: null, yank_reason: null }
      : yanked && { yanked_at: row.yanked_at ?? now, yank_reason: yanked.reason };
  return { ...yank, ...(deprecated !== undefined && { deprecated }) };
}

export interface Tag {
  readonly object: "environment_tag";
  readonly id: string;
  readonly name: string;
  readonly version: string;
}

export async function moveTag(
  env: Env,
  scope: Scope,
  id: string,
  { tag, version, now }: { readonly tag: string; readonly version: string; readonly now: number },
): Promise<Result<Tag>> {
  const own = await findOwn(env, scope, id);
  if (!own.ok) return own;
  const { environment } = own.value;
  if ((await getVersion(databaseOf(env), environment.id, version)) === null) {
    return refuse("not_found", `version: ${environment.name} has no version ${version}`, "version");
  }
  const tags = await tagsOf(databaseOf(env), environment.id);
  if (!tags.has(tag) && tags.size >= LIMITS.publishedTags) {
    return refuse("conflict", `${environment.name} has ${LIMITS.publishedTags} tags, the maximum`, null);
  }
  await setTag(databaseOf(env), environment, tag, version, now);
  return { ok: true, value: { object: "environment_tag", id: tag, name: environment.name, version } };
}

export async function removeTag(env: Env, scope: Scope, id: string, tag: string): Promise<Result<string>> {
  const own = await findOwn(env, scope, id);
  if (!own.ok) return own;
  if (tag === LATEST) return refuse("conflict", `tag: ${LATEST} is always there: move it instead`, "tag");
  await deleteTag(databaseOf(env), scope.orgId, own.value.environment.id, tag);
  return { ok: true, value: tag };
}

export async function readGrant(env: Env, scope: Scope, id: string): Promise<Result<GrantView>> {
  const named = await findNamed(env, scope, id);
  if (named === null) return notPublished(id);
  const { environment } = named;
  const grant = await getGrant(databaseOf(env), scope, environment.id);
  return {
    ok: true,
    value: {
      object: "environment_grant",
      id: environment.name,
      own: environment.org_id === scope.orgId,
      needs: [...(grant?.needs ?? [])],
      granted_by: grant?.granted_by ?? null,
      granted_at: grant === null ? null : seconds(grant.granted_at),
    },
  };
}

/** Replaces what was granted before. Runs that have started keep what they had. */
export async function changeGrant(
  env: Env,
  scope: Scope,
  id: string,
  { needs, by, now }: { readonly needs: readonly string[]; readonly by: string; readonly now: number },
): Promise<Result<GrantView>> {
  const named = await findNamed(env, scope, id);
  if (named === null) return notPublished(id);
  await setGrant(databaseOf(env), scope, {
    environment_id: named.environment.id,
    needs,
    granted_by: by,
    granted_at: now,
  });
  return await readGrant(env, scope, id);
}

/** For an operator: the code is deleted, and what is known of the version stays. May be repeated. */
export async function takeDown(
  env: Env,
  id: string,
  { reason, now }: { readonly reason: string; readonly now: number },
): Promise<Result<PublishedVersion>> {
  const [name = "", version = ""] = id.split("@");
  const found = await getPinned(databaseOf(env), nameKeyOf(name), version);
  if (found === null) return notPublished(id);
  const { environment, row } = found;
  const changes = { taken_down_at: row.taken_down_at ?? now, take_down_reason: reason, stored_bytes: 0 };
  // Written first, so that nothing is loaded once the files go.
  await updateVersion(databaseOf(env), environment.org_id, row.id, changes);
  await env.STORE.delete(Object.values(filesOf(environment, row.id)));
  return {
    ok: true,
    value: publishedViewOf(environment, { ...row, ...changes }, await tagsOf(databaseOf(env), environment.id)),
  };
}
