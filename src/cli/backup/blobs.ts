/**
 * A folder of an S3-compatible bucket with the blobs of backups, each under the SHA-256 of its content, and the manifest
 * of the last complete one. What is stored once is not stored again, and is checked whenever it is read.
 */
import { createHash } from "node:crypto";
import { AwsClient } from "aws4fetch";
import type * as z from "zod";
import { usageError } from "../exit.ts";
import { StepFailed } from "./step-failed.ts";

const NOT_FOUND = 404;
const MANIFEST = "manifest.json";

/** Where backups are stored, and how to get in. */
export interface BucketAddress {
  readonly bucket: string;
  /** Empty, or it ends with a slash. */
  readonly prefix: string;
  readonly endpoint: string | null;
  readonly region: string;
}

/** Reads `s3://bucket/prefix`. `env`: the usual variables of AWS. */
export function bucketAddress(
  flag: string,
  text: string | undefined,
  endpoint: string | undefined,
  env: NodeJS.ProcessEnv,
): BucketAddress {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(text ?? "") ?? [];
  if (bucket === undefined) throw usageError(`--${flag}: must be s3://BUCKET/PREFIX`, flag);
  const prefix = path.replace(/\/+$/, "");
  return {
    bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    endpoint: endpoint ?? (env["AWS_ENDPOINT_URL_S3"] || env["AWS_ENDPOINT_URL"] || null),
    region: env["AWS_REGION"] || env["AWS_DEFAULT_REGION"] || "us-east-1",
  };
}

export class Blobs {
  readonly #client: AwsClient;
  readonly #folder: string;
  readonly #signal: AbortSignal;
  /** How many blobs were stored, and how many were there already. */
  stored = 0;
  found = 0;

  constructor({ bucket, prefix, endpoint, region }: BucketAddress, env: NodeJS.ProcessEnv, signal: AbortSignal) {
    const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN } = env;
    if (!accessKeyId || !secretAccessKey) {
      throw usageError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: are required, as the keys of the bucket");
    }
    const token = AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {};
    this.#client = new AwsClient({ accessKeyId, secretAccessKey, ...token, region, service: "s3" });
    const base =
      endpoint === null ? `https://${bucket}.s3.${region}.amazonaws.com` : `${endpoint.replace(/\/+$/, "")}/${bucket}`;
    const path = prefix.split("/").map(encodeURIComponent).join("/");
    this.#folder = `${base}/${path}`;
    this.#signal = signal;
  }

  /** Stores the content unless it is stored already. Returns its SHA-256 in hex. */
  async add(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
    const bytes = typeof content === "string" ? bytesOf(content) : content;
    const sha256 = sha256Of(bytes);
    if (!(await this.has(sha256))) {
      await this.#put(`blobs/${sha256}`, bytes, sha256);
      this.stored += 1;
    }
    return sha256;
  }

  async has(sha256: string): Promise<boolean> {
    const reply = await this.#call(`blobs/${sha256}`, { method: "HEAD" });
    if (reply.status === NOT_FOUND) return false;
    await this.#checked(reply, sha256);
    this.found += 1;
    return true;
  }

  async get(sha256: string): Promise<Uint8Array<ArrayBuffer>> {
    const reply = await this.#checked(await this.#call(`blobs/${sha256}`, { method: "GET" }), sha256);
    const bytes = new Uint8Array(await reply.arrayBuffer());
    if (sha256Of(bytes) === sha256) return bytes;
    throw new StepFailed(`the content of blobs/${sha256} is damaged: it has another SHA-256`);
  }

  async text(sha256: string): Promise<string> {
    return new TextDecoder().decode(await this.get(sha256));
  }

  async writeManifest(manifest: object): Promise<void> {
    const bytes = bytesOf(JSON.stringify(manifest, null, 1));
    await this.#put(MANIFEST, bytes, sha256Of(bytes));
  }

  /** Null if no backup was completed here. */
  async readManifest<Schema extends z.ZodType>(schema: Schema): Promise<z.output<Schema> | null> {
    const reply = await this.#call(MANIFEST, { method: "GET" });
    if (reply.status === NOT_FOUND) {
      await reply.body?.cancel();
      return null;
    }
    const read = schema.safeParse(await (await this.#checked(reply, MANIFEST)).json());
    if (read.success) return read.data;
    throw new StepFailed(`${MANIFEST} is not the manifest of a backup of this release`);
  }

  async #put(name: string, body: Uint8Array<ArrayBuffer>, sha256: string): Promise<void> {
    const headers = { "x-amz-content-sha256": sha256, "x-amz-meta-sha256": sha256 };
    const reply = await this.#checked(await this.#call(name, { method: "PUT", body, headers }), name);
    await reply.body?.cancel();
  }

  /** The client tries again after an error of the server. */
  async #call(name: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#client.fetch(`${this.#folder}${name}`, { ...init, signal: this.#signal });
    } catch (thrown) {
      this.#signal.throwIfAborted();
      throw new StepFailed(`${this.#folder} does not answer`, { cause: thrown });
    }
  }

  async #checked(reply: Response, name: string): Promise<Response> {
    if (reply.ok) return reply;
    throw new StepFailed(
      `${this.#folder}${name}: the bucket answered ${reply.status}: ${(await reply.text()).slice(0, 200)}`,
    );
  }
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text));
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
