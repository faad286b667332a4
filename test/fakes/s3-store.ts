/**
 * A fake S3 store on loopback with one bucket in memory: HEAD, GET and PUT of objects by path-style addresses, signed
 * with AWS Signature Version 4 over headers. A wrong signature, or a content with another SHA-256 than its header says,
 * is refused as S3 refuses it. Source: Amazon S3 API Reference, "Authenticating Requests (AWS Signature Version 4)".
 */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export const S3_KEYS = {
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "a-secret-of-the-store",
  AWS_REGION: "eu-west-1",
};

export interface S3Store {
  readonly url: string;
  /** By key. */
  readonly objects: Map<string, Uint8Array>;
  /** `PUT key` of every request that was accepted. */
  readonly seen: string[];
  /** Called after the effect of a request, before its reply. */
  afterEffect: (request: string) => Promise<void>;
  stop(): Promise<void>;
}

export async function startS3Store(bucket: string): Promise<S3Store> {
  const objects = new Map<string, Uint8Array>();
  const seen: string[] = [];
  const answer = async (request: IncomingMessage): Promise<[status: number, body?: Uint8Array | string]> => {
    const body = await buffer(request);
    const refused = refusalOf(request, body);
    if (refused !== null) return [403, errorOf(refused)];
    const { pathname } = new URL(request.url ?? "", "http://s3");
    const [, named, ...path] = decodeURIComponent(pathname).split("/");
    const key = path.join("/");
    if (named !== bucket) return [404, errorOf("NoSuchBucket")];
    seen.push(`${request.method} ${key}`);
    if (request.method === "PUT") objects.set(key, body);
    const object = objects.get(key);
    if (object === undefined) return [404, errorOf("NoSuchKey")];
    return request.method === "GET" ? [200, object] : [200];
  };
  const store: S3Store = { url: "", objects, seen, afterEffect: async () => undefined, stop: async () => undefined };
  const server = createServer((request, response) => {
    const reply = async () => {
      const [status, body] = await answer(request);
      await store.afterEffect(seen.at(-1) ?? "");
      response.writeHead(status, { "content-type": status === 200 ? "binary/octet-stream" : "application/xml" });
      response.end(request.method === "HEAD" ? undefined : body);
    };
    reply().catch((thrown: unknown) => response.writeHead(500).end(String(thrown)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return Object.assign(store, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop });
}

function errorOf(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code></Error>`;
}

/** The code of the error; null if signature and content are right. */
function refusalOf({ method = "", url = "", headers }: IncomingMessage, body: Uint8Array): string | null {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, id, day, region, names, signature] = pattern.exec(headers.authorization ?? "") ?? [];
  if (id !== S3_KEYS.AWS_ACCESS_KEY_ID || names === undefined || day === undefined || region === undefined) {
    return "InvalidAccessKeyId";
  }
  const hash = String(headers["x-amz-content-sha256"]);
  if (hash !== "UNSIGNED-PAYLOAD" && hash !== sha256(body)) return "XAmzContentSHA256Mismatch";
  const { pathname, search } = new URL(url, "http://s3");
  const canonical = [
    ...[method, pathname, search.slice(1)],
    ...names.split(";").map((name) => `${name}:${String(headers[name]).trim()}`),
    ...["", names, hash],
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce<Buffer>(
    hmac,
    Buffer.from(`AWS4${S3_KEYS.AWS_SECRET_ACCESS_KEY}`),
  );
  return hmac(key, toSign).toString("hex") === signature ? null : "SignatureDoesNotMatch";
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
