/** Stores an uploaded dataset, in one request or in parts, within the limits of its organisation. */
import type { Scope } from "../../contract/scope.ts";
import type { DatasetUpload, StoreOptions } from "../dataset/store-rows.ts";
import { type Body, createDataset, type UploadOptions } from "../dataset/upload.ts";
import { beginUpload, completeUpload, type FileInParts, receivePart } from "../dataset/upload-parts.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { limitsOf, refusedStorage, withinUploads } from "./limits.ts";
import { noteProject } from "./note-project.ts";

export async function uploadDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: Body,
  options: UploadOptions,
): ReturnType<typeof createDataset> {
  const { now } = options;
  const made = await withinUploads(env, scope.orgId, now, () => createDataset(env, scope, upload, body, options));
  if (made.ok) await noteProject(env, scope, now);
  return made;
}

/** The parts of an upload that is abandoned are deleted by the daily cleanup. */
export async function createUpload(
  env: Env,
  scope: Scope,
  file: FileInParts,
  options: CreateOptions,
): ReturnType<typeof beginUpload> {
  const refused = refusedStorage(await limitsOf(env, scope.orgId, options.now));
  if (refused !== null) return refused;
  const made = await beginUpload(env, scope, file, options);
  if (made.ok) await noteProject(env, scope, options.now);
  return made;
}

export function uploadPart(
  env: Env,
  scope: Scope,
  id: string,
  number: number,
  body: Body,
  options: Pick<StoreOptions, "now" | "allowed">,
): ReturnType<typeof receivePart> {
  return withinUploads(env, scope.orgId, options.now, () => receivePart(env, scope, id, number, body, options));
}

export function completeUploadOf(
  env: Env,
  scope: Scope,
  id: string,
  bytes: number,
  options: StoreOptions,
): ReturnType<typeof completeUpload> {
  return withinUploads(env, scope.orgId, options.now, () => completeUpload(env, scope, id, bytes, options));
}
