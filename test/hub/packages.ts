/** Packages as `rollcall env publish` sends them, and what a platform answers to them. */
import { packTar } from "modern-tar";
import { CODE_FILE } from "../../src/contract/package-files.ts";
import type { TestApi } from "../kernel/platform.ts";

export interface Packed {
  readonly name: string;
  readonly version: string;
  readonly code: string;
  /** Of package.json, over the rest. */
  readonly manifest?: object;
  /** Further files, by their names. */
  readonly files?: Readonly<Record<string, string>>;
}

export async function pack({ name, version, code, manifest, files }: Packed): Promise<Uint8Array<ArrayBuffer>> {
  const json = JSON.stringify({ name: `@${name}`, version, description: "a game", license: "MIT", ...manifest });
  return await zip({
    "package/package.json": json,
    [`package/${CODE_FILE}`]: code,
    "package/README.md": "# A game\n",
    ...files,
  });
}

/** A .tgz with exactly these files. */
export async function zip(files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const entries = Object.entries(files).map(([name, body]) => {
    const size = new TextEncoder().encode(body).byteLength;
    return { header: { name, size, type: "file" as const }, body };
  });
  return await gzip(await packTar(entries));
}

export async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const zipped = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(zipped).arrayBuffer());
}

export async function send(api: TestApi, bytes: Uint8Array<ArrayBuffer>, query = ""): Promise<Response> {
  const headers = { "content-type": "application/octet-stream" };
  return await api.ask(`/v1/environments?${query}`, { method: "POST", body: bytes, headers });
}
