/** Stores an uploaded dataset, within the limits of its organisation. */
import type { Scope } from "../../contract/scope.ts";
import { createDataset, type DatasetUpload, type UploadOptions } from "../dataset/upload.ts";
import { withinUploads } from "./limits.ts";
import { noteProject } from "./note-project.ts";

export async function uploadDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: ReadableStream<Uint8Array> | null,
  options: UploadOptions,
): ReturnType<typeof createDataset> {
  const { now } = options;
  const made = await withinUploads(env, scope.orgId, now, () => createDataset(env, scope, upload, body, options));
  if (made.ok) await noteProject(env, scope, now);
  return made;
}
