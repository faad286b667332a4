/** The body of a request: read up to a size, and as JSON only where it says it is. */
import type { IncomingMessage } from "node:http";
import { RequestError } from "./errors.ts";
import type { PolicyRequest } from "./reply.ts";

const LIMIT_BYTES = 1024 * 1024;

/** Throws a `RequestError` of 413 as soon as the body is known to be larger than 1 MiB. */
export async function readBody(request: IncomingMessage): Promise<Pick<PolicyRequest, "bytes" | "json">> {
  if (Number(request.headers["content-length"] ?? 0) > LIMIT_BYTES) throw tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > LIMIT_BYTES) throw tooLarge();
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  return { bytes, json: () => parseJson(request.headers["content-type"], bytes) };
}

function tooLarge(): RequestError {
  return new RequestError(413, `the body is larger than ${LIMIT_BYTES} bytes`);
}

/** The content type is asked for as vLLM does; a page of another site cannot send it without being let. */
function parseJson(type: string | undefined, bytes: Buffer): unknown {
  if (type?.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new RequestError(400, "Unsupported Media Type: Only 'application/json' is allowed");
  }
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new RequestError(400, `the body is no JSON: ${error.message}`);
  }
}
