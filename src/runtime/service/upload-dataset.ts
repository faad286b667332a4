/** Takes an uploaded dataset within what its organisation may use. */
import type { Scope } from "../../contract/scope.ts";
import { createDataset, type DatasetUpload, type UploadOptions } from "../dataset/upload.ts";
import { withinUploads } from "./limits.ts";

export function uploadDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: ReadableStream<Uint8Array> | null,
  options: UploadOptions,
): ReturnType<typeof createDataset> {
  return withinUploads(env, scope.orgId, options.now, () => createDataset(env, scope, upload, body, options));
}
