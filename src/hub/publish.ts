/**
 * Publishes one version: its package is read, its code is loaded and validated in an isolate, its files are stored, and
 * then its row is written. So a version that can be found is complete, and a request that is cut off leaves nothing that
 * can be found.
 */

import { EnvError, isError, messageOf } from "../contract/errors.ts";
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { nameKeyOf, type PublishedVersion, type Visibility } from "../contract/published-environment.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { argumentsWork } from "../core/rubrics/work.ts";
import type { Validation } from "../core/validation/validate.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { minting, sha256Hex } from "../kernel/kit/secrets.ts";
import { projectGone, type Result, refuse } from "../kernel/messages/refusal.ts";
import { noteProject } from "../kernel/service/note-project.ts";
import { announce } from "./announce.ts";
import { filesOf } from "./files.ts";
import { isolatedEnvironment } from "./isolated-code.ts";
import {
  countPublished,
  getVersion,
  insertEnvironment,
  insertVersion,
  isOpen,
  moveLatest,
  ownEnvironment,
  ownerName,
  ownerOf,
  publishedViewOf,
  tagsOf,
  takeOwner,
  versionsOf,
} from "./queries.ts";
import { type ReadNpmPackage, type ReadPackage, type ReadPythonPackage, readPackage } from "./read-package.ts";
import type { About, HubEnvironmentRow, HubVersionRow } from "./tables.ts";
import { validateBundle } from "./validate-bundle.ts";
import { LATEST, newestOf } from "./version-names.ts";

export interface Publication {
  /** Of a new environment; null: `private`. An environment keeps the visibility of its first version. */
  readonly visibility: Visibility | null;
  /** Whether it is published although its validation found errors. */
  readonly allowFailing: boolean;
  readonly tag: string | null;
  /** Of a wheel: the owner, by default that of the organisation, and its file name. */
  readonly owner?: string | null;
  readonly file?: string | null;
  /** False: `latest` does not move, unless it is the first version. */
  readonly latest?: boolean;
  /** What the sender says of the package, if it does; anything else is refused. */
  readonly expected?: { readonly id: string; readonly integrity: string | undefined };
}

export interface PublishOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** `key_…`, `per_…`. */
  readonly by: string;
  /** Whether the caller still has the permission. */
  readonly allowed: () => Promise<boolean>;
}

export interface Published {
  readonly version: PublishedVersion;
  /** This code had been published as this version before. */
  readonly replayed: boolean;
}

export async function publish(
  env: Env,
  scope: Scope,
  bytes: Uint8Array<ArrayBuffer>,
  publication: Publication,
  options: PublishOptions,
): Promise<Result<Published>> {
  const owner = async () => publication.owner ?? (await ownerName(databaseOf(env), scope.orgId));
  const read = await readPackage(bytes, { owner, file: publication.file ?? null });
  if (!read.ok) return read;
  const { name, version, digest, kind } = read.value;
  const other = refuseOther(read.value, publication);
  if (other !== null) return other;
  const named = await checkName(env, scope, { name, kind }, publication);
  if (!named.ok) return named;
  const before = named.value && (await winner(env, named.value, version, digest));
  if (before !== null) return refuseChanged(before, read.value, publication) ?? before;
  const known =
    read.value.kind === "python"
      ? knownOfWheel(read.value, bytes.byteLength)
      : await validate(env, scope.orgId, read.value, bytes.byteLength);
  if (!known.ok) return known;
  const { about, validation } = known.value;
  if (validation["ok"] !== true && !publication.allowFailing) return refuseFailing(validation);
  // Validation takes up to a minute.
  if (!(await options.allowed())) {
    return refuse("unauthorized", "this key lost its permission during the publication", null);
  }
  if (!(await isOpen(databaseOf(env), scope))) return projectGone();
  const environment = await openEnvironment(env, scope, { name, kind }, publication, options);
  if (!environment.ok) return environment;
  const made = { read: read.value, bytes, about, validation };
  const published = await write(env, environment.value, made, publication, { ...options, paidBy: scope.projectId });
  await noteProject(env, scope, options.now);
  return published;
}

/** npm would show as published what is not: another package with the same code, or one that was taken down. */
function refuseChanged(before: Result<Published>, { integrity }: ReadPackage, { expected }: Publication) {
  if (!before.ok || expected === undefined) return null;
  const { id, package: file, taken_down } = before.value.version;
  if (file.integrity === integrity && taken_down === null) return null;
  const why = taken_down === null ? "with other files" : "and taken down";
  return refuse("conflict", `version: ${id} was published before ${why}: publish this one as another`, "version");
}

function refuseOther({ name, version, integrity }: ReadPackage, { expected }: Publication): Result<never> | null {
  if (expected === undefined) return null;
  const id = `${name}@${version}`;
  if (id !== expected.id) {
    return refuse("invalid_request", `package: its package.json is of @${id}, not of @${expected.id}`, "package");
  }
  if (expected.integrity === undefined || expected.integrity === integrity) return null;
  const message = `package: its hash is ${integrity}, not ${expected.integrity}: its bytes were changed on the way`;
  return refuse("invalid_request", message, "package");
}

interface Known {
  readonly about: About;
  readonly validation: PublishedVersion["validation"];
}

interface Checked extends Known {
  readonly read: ReadPackage;
  readonly bytes: Uint8Array;
}

async function validate(env: Env, orgId: string, read: ReadNpmPackage, bytes: number): Promise<Result<Known>> {
  const code = await loadCode(env, orgId, read, bytes);
  if (!code.ok) return code;
  const { about, args } = code.value;
  const validation = await validateBundle(env, orgId, bundleOf(read), { args, rows: read.examples });
  return { ok: true, value: { about, validation: { ...validation } } };
}

/** A worker plays it: the platform cannot, and has not. */
function knownOfWheel(
  { license, repository, builder, integrity, wheel }: ReadPythonPackage,
  bytes: number,
): Result<Known> {
  const message = "the platform does not play Python environments itself";
  return {
    ok: true,
    value: {
      about: {
        ...{ args: {}, needs: [], judges: [], dataset: null, row: null, license, protocol: null },
        package: { bytes, integrity, file: wheel.file },
        provenance: { repository, commit: null, builder },
      },
      validation: {
        ...{ result: "unchecked", ok: true, examples: 0, policies: {} },
        checks: [{ name: "build", status: "skipped", message }],
      },
    },
  };
}

/** Stores the files, then the row with its tags. */
async function write(
  env: Env,
  environment: HubEnvironmentRow,
  { read, bytes, about, validation }: Checked,
  { tag, latest = true }: Publication,
  { now, by, paidBy }: PublishOptions & { readonly paidBy: string },
): Promise<Result<Published>> {
  const { org_id, project_id, id: environment_id, name } = environment;
  const { version, description, digest } = read;
  const known = await versionsOf(databaseOf(env), environment_id);
  if (known.length >= LIMITS.publishedVersions) {
    return refuse("conflict", `version: ${name} has ${known.length} versions, the maximum`, "version");
  }
  const tagged = await tagsOf(databaseOf(env), environment_id);
  if (tag !== null && !tagged.has(tag) && tagged.size >= LIMITS.publishedTags) {
    return refuse("conflict", `tag: ${name} has ${tagged.size} tags, the maximum`, "tag");
  }
  // The same package again has the same files, so a publication that is repeated after a kill leaves none behind.
  const id = `ev_${sha256Hex(JSON.stringify([environment_id, version, about.package.integrity])).slice(0, 32)}`;
  const stored_bytes = await storeFiles(env, environment, id, read, bytes);
  const listing = read.kind === "python" ? { npm: null, wheel: read.wheel } : { npm: read.npm, wheel: null };
  const row = {
    ...{ id, project_id, environment_id, version, digest, description, stored_bytes, about, validation, ...listing },
    ...{ paid_by: paidBy, created_by: by, created_at: now },
  };
  const mayBeLatest = latest || known.length === 0;
  const isNewest = mayBeLatest && newestOf([...known.map((one) => one.version), version]) === version;
  if (!(await insertVersion(databaseOf(env), org_id, row, { tag, isNewest }))) {
    const won = await getVersion(databaseOf(env), environment_id, version);
    if (won === null) throw new Error(`version ${version} of ${environment_id} could not be written`);
    if (won.id !== id) await env.STORE.delete(Object.values(filesOf(environment, id)));
    return await answerWith(env, environment, won, digest);
  }
  await settleLatest(env, environment, version, now);
  const shown = publishedViewOf(
    environment,
    await written(env, environment_id, version),
    await tagsOf(databaseOf(env), environment_id),
  );
  await announce(env, org_id, "environment.published", shown, now);
  return { ok: true, value: { version: shown, replayed: false } };
}

/** A newer version that was published at the same time may have lost `latest` and its description to this one. */
async function settleLatest(env: Env, environment: HubEnvironmentRow, version: string, now: number): Promise<void> {
  const versions = (await versionsOf(databaseOf(env), environment.id)).map((one) => one.version);
  const newest = newestOf(versions);
  const tagged = (await tagsOf(databaseOf(env), environment.id)).get(LATEST);
  if (newest === null || newest === version || tagged !== version) return;
  await moveLatest(databaseOf(env), environment, await written(env, environment.id, newest), now);
}

async function written(env: Env, environmentId: string, version: string): Promise<HubVersionRow> {
  const row = await getVersion(databaseOf(env), environmentId, version);
  if (row === null) throw new Error(`version ${version} of ${environmentId} was not written`);
  return row;
}

/** The environment with this name, if the project may publish it; null if it can make it. */
async function checkName(
  env: Env,
  { orgId, projectId }: Scope,
  { name, kind }: Pick<ReadPackage, "name" | "kind">,
  { visibility }: Publication,
): Promise<Result<HubEnvironmentRow | null>> {
  const [owner = ""] = name.split("/");
  const own = await ownerName(databaseOf(env), orgId);
  if (own !== null && own !== owner) {
    return refuse("forbidden", `name: the organisation publishes as ${own}/…, not ${owner}/…`, "name");
  }
  if (own === null && (await ownerOf(databaseOf(env), nameKeyOf(owner))) !== null) {
    return refuse("conflict", `name: another organisation publishes as ${owner}/…: choose another owner`, "name");
  }
  const environment = await ownEnvironment(databaseOf(env), orgId, nameKeyOf(name));
  if (environment === null) {
    if ((await countPublished(databaseOf(env), orgId)) < LIMITS.publishedEnvironments) return { ok: true, value: null };
    const message = `the organisation has published ${LIMITS.publishedEnvironments} environments, the maximum`;
    return refuse("conflict", message, "name");
  }
  if (environment.name !== name) {
    return refuse("conflict", `name: the organisation has published it as ${environment.name}`, "name");
  }
  if (environment.kind !== kind) {
    return refuse("conflict", `name: ${name} is a ${environment.kind} environment, which does not change`, "name");
  }
  if (environment.visibility === "private" && environment.project_id !== projectId) {
    return refuse("conflict", `name: ${name} is private to another project of the organisation`, "name");
  }
  if (visibility !== null && visibility !== environment.visibility) {
    const message = `visibility: ${name} is ${environment.visibility}, which does not change: leave the field out`;
    return refuse("conflict", message, "visibility");
  }
  return { ok: true, value: environment };
}

/** The same; it exists afterwards. The first publication of an organisation takes the owner's name for it. */
async function openEnvironment(
  env: Env,
  scope: Scope,
  { name, kind }: Pick<ReadPackage, "name" | "kind">,
  publication: Publication,
  { now, by }: PublishOptions,
): Promise<Result<HubEnvironmentRow>> {
  const { orgId, projectId } = scope;
  const [owner = ""] = name.split("/");
  await takeOwner(databaseOf(env), orgId, { name: owner, key: nameKeyOf(owner), now });
  const checked = await checkName(env, scope, { name, kind }, publication);
  if (!checked.ok) return checked;
  if (checked.value !== null) return { ok: true, value: checked.value };
  const visibility = publication.visibility ?? "private";
  await insertEnvironment(databaseOf(env), orgId, {
    ...{
      id: mintId("env", minting(env, now)),
      name,
      key: nameKeyOf(name),
      visibility,
      kind,
      description: null,
    },
    project_id: visibility === "private" ? projectId : null,
    ...{ created_by: by, created_at: now, updated_at: now },
  });
  const made = await checkName(env, scope, { name, kind }, publication);
  if (!made.ok) return made;
  if (made.value === null) throw new Error(`the environment ${name} was not written`);
  return { ok: true, value: made.value };
}

/** The version that exists already, if it does: this one, whose tags are not moved again, or another that won. */
async function winner(
  env: Env,
  environment: HubEnvironmentRow,
  version: string,
  digest: string,
): Promise<Result<Published> | null> {
  const row = await getVersion(databaseOf(env), environment.id, version);
  return row === null ? null : await answerWith(env, environment, row, digest);
}

async function answerWith(
  env: Env,
  environment: HubEnvironmentRow,
  row: HubVersionRow,
  digest: string,
): Promise<Result<Published>> {
  if (row.digest === digest) {
    const shown = publishedViewOf(environment, row, await tagsOf(databaseOf(env), environment.id));
    // The request that wrote it may have been cut off before its event.
    await announce(env, environment.org_id, "environment.published", shown, row.created_at);
    return { ok: true, value: { version: shown, replayed: true } };
  }
  const message = `version: ${environment.name}@${row.version} was published before with the digest ${row.digest}: versions never change, so publish this one as another`;
  return refuse("conflict", message, "version");
}

function bundleOf({ code, digest }: Pick<ReadNpmPackage, "code" | "digest">) {
  return { digest, text: async () => code };
}

async function loadCode(
  env: Env,
  orgId: string,
  { manifest, code, digest, integrity, license, repository, builder }: ReadNpmPackage,
  bytes: number,
): Promise<Result<{ readonly about: About; readonly args: JsonObject }>> {
  const args = (manifest.rollcall?.args ?? {}) as JsonObject;
  try {
    const loadable = await isolatedEnvironment(env, orgId, bundleOf({ code, digest }));
    const fault = await loadable.checkArguments(args, argumentsWork());
    if (fault !== null) {
      const message = `package.json: rollcall.args: ${fault.path.join(".")}: ${fault.message ?? fault.kind}`;
      return refuse("invalid_request", `package: ${message}`, "package");
    }
    const { description } = await loadable.load(args);
    const source = description.evalDataset ?? description.dataset;
    const about: About = {
      ...{ args: loadable.args, needs: [...loadable.needs], judges: [...description.judges] },
      ...(description.maxReward != null && { max_reward: description.maxReward }),
      ...{ dataset: source.kind, row: source.row, license, protocol: description.protocol },
      package: { bytes, integrity },
      provenance: { repository, commit: manifest.rollcall?.commit ?? null, builder },
    };
    if (JSON.stringify(about).length > LIMITS.publishedAboutCharacters) {
      const message = `package: its schemas and needs are more than ${LIMITS.publishedAboutCharacters} characters of JSON`;
      return refuse("invalid_request", message, "package");
    }
    return { ok: true, value: { about, args } };
  } catch (thrown) {
    if (!isError(thrown, EnvError)) throw thrown;
    return refuse("invalid_request", `package: its code cannot be loaded: ${messageOf(thrown)}`, "package");
  }
}

function refuseFailing(validation: Known["validation"]): Result<never> {
  const { checks } = validation as Pick<Validation, "checks">;
  const failed = checks.filter(({ status }) => status === "error");
  const list = failed.map(({ name, message }) => `${name}: ${message}`).join("; ");
  const message = `package: its validation failed: ${list}. To publish it all the same, use allow_failing=true: its page shows this for ever`;
  return refuse("invalid_request", message, "package");
}

/** Returns their bytes. */
async function storeFiles(
  env: Env,
  environment: HubEnvironmentRow,
  id: string,
  read: ReadPackage,
  bytes: Uint8Array,
): Promise<number> {
  const keys = filesOf(environment, id);
  const { readme } = read;
  const files = [await env.STORE.put(keys.package, bytes)];
  if (read.kind === "python") files.push(await env.STORE.put(keys.metadata, read.metadata));
  else files.push(await env.STORE.put(keys.code, read.code));
  if (readme !== null) files.push(await env.STORE.put(keys.readme, readme));
  return files.reduce((total, file) => total + (file?.size ?? 0), 0);
}
