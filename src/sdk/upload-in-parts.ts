/**
 * Uploads a file in parts. A part that fails is sent again (transport.ts). An upload that was interrupted is continued
 * by the next upload of the same file under the same name: it is found by the file's SHA-256, and only the parts that
 * are not stored are sent.
 */
import type { DatasetUploadProgress, DatasetUploadView } from "../contract/dataset-upload.ts";
import { canonicalJson, type JsonObject } from "../contract/json.ts";
import type { DatasetView } from "../contract/uploaded-dataset.ts";
import type { LargeFile } from "./dataset-body.ts";
import type { DatasetUploads } from "./dataset-uploads.ts";
import type { DatasetOptions } from "./options.ts";
import { ApiRequestError } from "./request-error.ts";

/** The file itself is at fault: no repeat can complete its upload. */
const FINAL: ReadonlySet<string> = new Set(["invalid_row", "too_large", "invalid_request"]);

export async function uploadInParts(
  uploads: DatasetUploads,
  file: LargeFile,
  options: DatasetOptions,
): Promise<DatasetView> {
  const { signal, timeoutMs, onProgress } = options;
  const call = { signal, timeoutMs };
  let upload: DatasetUploadProgress | null = null;
  let [number, sent] = [0, 0];
  try {
    for await (const { data, bytes } of file.pieces) {
      // In the loop, so that a refusal ends a stream, too.
      upload ??= await begin(uploads, file, options);
      number += 1;
      signal?.throwIfAborted();
      if (lacks(upload, number, bytes)) await uploads.putPart(upload.id, number, data, call);
      sent += bytes;
      onProgress?.({ sent, total: file.bytes });
    }
    upload ??= await begin(uploads, file, options);
    return await uploads.complete(upload.id, sent, call);
  } catch (thrown) {
    const isFinal = thrown instanceof ApiRequestError && FINAL.has(thrown.code);
    const isOver = isFinal || file.sha256 === null;
    // What cannot be continued is deleted. If that fails too, it expires.
    if (upload !== null && isOver) await Promise.allSettled([uploads.delete(upload.id)]);
    throw thrown;
  }
}

/** The parts of a completed upload are gone, and it returns its dataset again. */
function lacks({ dataset_id, parts }: DatasetUploadProgress, number: number, bytes: number): boolean {
  return dataset_id === null && !parts.some((part) => part.number === number && part.bytes === bytes);
}

async function begin(
  uploads: DatasetUploads,
  { bytes, sha256 }: LargeFile,
  { name, environment, environmentArgs, idempotencyKey, signal }: DatasetOptions,
): Promise<DatasetUploadProgress> {
  const args = environment === undefined ? undefined : environmentArgs;
  const wanted = keyOf({ name: name ?? null, environment: environment ?? null, environment_args: args ?? {} });
  if (sha256 !== null) {
    for await (const upload of uploads.list({ sha256 }, { signal })) {
      if (keyOf(upload) === wanted) return await uploads.get(upload.id, { signal });
    }
  }
  const said = { bytes: bytes ?? undefined, sha256: sha256 ?? undefined };
  const request = { name, environment, environment_args: args, ...said };
  const made = await uploads.create(request, { idempotencyKey, signal });
  return await uploads.get(made.id, { signal });
}

/** What must be the same in two uploads of a file. */
function keyOf({
  name,
  environment,
  environment_args,
}: Pick<DatasetUploadView, "name" | "environment" | "environment_args">) {
  return canonicalJson([name, environment, environment_args as JsonObject]);
}
