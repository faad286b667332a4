/** The objects of the bucket, which are called files here. Those of the platform itself are not copied. */

import * as z from "zod";
import { Refusal } from "../kernel/http/errors.ts";
import { PLATFORM_FOLDER } from "../kernel/kit/draining.ts";
import { FILE_SIZE, type FilesPage, PART_BYTES, type UploadedParts } from "./wire.ts";

const RESTORING = `${PLATFORM_FOLDER}restoring`;
const RESTORED = `${PLATFORM_FOLDER}restored`;

export async function listFiles({ STORE }: Env, after: string | null): Promise<FilesPage> {
  const { objects, truncated } = await STORE.list(after === null ? {} : { startAfter: after });
  const files = objects.map(({ key, size, checksums }) => ({ key, size, sha256: checksums.toJSON().sha256 ?? null }));
  return {
    files: files.filter(({ key }) => !key.startsWith(PLATFORM_FOLDER)),
    next: truncated ? (objects.at(-1)?.key ?? null) : null,
  };
}

/** A part of a file. Throws if the file does not exist any more. */
export async function readFile({ STORE }: Env, key: string, offset: number): Promise<Response> {
  const object = await STORE.get(key, { range: { offset, length: PART_BYTES } });
  if (object === null) throw new Refusal({ code: "not_found", message: `no file ${key}`, param: "key" });
  return new Response(object.body, { headers: { [FILE_SIZE]: String(object.size) } });
}

/** `sha256`: of the content, in hex. The bucket refuses any other content. */
export async function writeFile({ STORE }: Env, key: string, sha256: string, content: ArrayBuffer): Promise<void> {
  await STORE.put(ownable(key), content, { sha256 });
}

/** Begins a file of several parts, and returns the id of its upload. */
export async function beginFile({ STORE }: Env, key: string): Promise<string> {
  return (await STORE.createMultipartUpload(ownable(key))).uploadId;
}

export async function writePart(
  { STORE }: Env,
  { key, upload, part }: { readonly key: string; readonly upload: string; readonly part: number },
  content: ArrayBuffer,
): Promise<R2UploadedPart> {
  return await STORE.resumeMultipartUpload(key, upload).uploadPart(part, content);
}

export async function endFile(
  { STORE }: Env,
  key: string,
  upload: string,
  { parts }: z.output<typeof UploadedParts>,
): Promise<void> {
  await STORE.resumeMultipartUpload(key, upload).complete(parts);
}

/** `starting`: everything is written, and its objects have begun to start. */
const Restoring = z.object({ of: z.string(), starting: z.boolean() });
type Restoring = z.output<typeof Restoring>;

/** The backup that is being restored, and the one that was restored last; null if there is none. */
export async function readRestores({ STORE }: Env): Promise<{ restoring: Restoring | null; restored: string | null }> {
  const [restoring, restored] = await Promise.all([STORE.get(RESTORING), STORE.get(RESTORED)]);
  return {
    restoring: restoring === null ? null : Restoring.parse(await restoring.json()),
    restored: restored === null ? null : await restored.text(),
  };
}

export async function noteRestoring({ STORE }: Env, restoring: Restoring): Promise<void> {
  await STORE.put(RESTORING, JSON.stringify(restoring));
}

/** In this order: a repeat of the last request finds that all is done. */
export async function noteRestored({ STORE }: Env, backup: string): Promise<void> {
  await STORE.put(RESTORED, backup);
  await STORE.delete(RESTORING);
}

function ownable(key: string): string {
  if (!key.startsWith(PLATFORM_FOLDER)) return key;
  throw new Refusal({ code: "invalid_request", message: `${key} is the platform's own`, param: "key" });
}
