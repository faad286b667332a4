/**
 * Uploads a file to R2. It is hashed, and stored in parts, because R2 cannot store a stream of unknown length at once.
 *
 * Invariants. At most one part is in memory, and its buffer grows with what has arrived. A file of one part is stored
 * with a single put; a longer one cannot be read before `finish`. After `discard` nothing of the file is left, whatever
 * happened before. All parts but the last have the same size, as R2 requires.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Subrequests } from "./subrequests.ts";

/** A stored file: its size, and its SHA-256 in hex. */
export interface StoredFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** Initial size of a part's buffer: most files are smaller than a part. */
const FIRST_BYTES = 64 * 1024;

export class FileUpload {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #subrequests: Subrequests;
  readonly #hash = new FileHash();
  #part = new Uint8Array(FIRST_BYTES);
  readonly #parts: R2UploadedPart[] = [];
  #filled = 0;
  #multipart: R2MultipartUpload | null = null;

  constructor(bucket: R2Bucket, key: string, subrequests: Subrequests) {
    this.#bucket = bucket;
    this.#key = key;
    this.#subrequests = subrequests;
  }

  get bytes(): number {
    return this.#hash.bytes + this.#filled;
  }

  async write(chunk: Uint8Array): Promise<void> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#filled === LIMITS.datasetPartBytes) await this.#sendPart();
      if (this.#filled === this.#part.length) this.#grow();
      const taken = rest.subarray(0, this.#part.length - this.#filled);
      this.#part.set(taken, this.#filled);
      this.#filled += taken.length;
      rest = rest.subarray(taken.length);
    }
  }

  #grow(): void {
    const grown = new Uint8Array(Math.min(this.#part.length * 2, LIMITS.datasetPartBytes));
    grown.set(this.#part);
    this.#part = grown;
  }

  async finish(): Promise<StoredFile> {
    const multipart = this.#multipart;
    if (multipart === null) {
      const whole = await this.#takePart();
      await this.#subrequests.fetch(() => this.#bucket.put(this.#key, whole));
    } else {
      await this.#sendPart();
      await this.#subrequests.fetch(() => multipart.complete(this.#parts));
      this.#multipart = null;
    }
    return { bytes: this.bytes, sha256: await this.#hash.digest() };
  }

  async discard(): Promise<void> {
    const multipart = this.#multipart;
    // Needed for a multipart upload too: a `complete` that failed may still have created the object.
    await this.#subrequests.fetch(() => this.#bucket.delete(this.#key));
    if (multipart !== null) await this.#subrequests.fetch(() => multipart.abort());
  }

  async #sendPart(): Promise<void> {
    this.#multipart ??= await this.#subrequests.fetch(() => this.#bucket.createMultipartUpload(this.#key));
    const multipart = this.#multipart;
    const part = await this.#takePart();
    const number = this.#parts.length + 1;
    this.#parts.push(await this.#subrequests.fetch(() => multipart.uploadPart(number, part)));
  }

  /** The part so far, hashed. It is valid until the next `write`. */
  async #takePart(): Promise<Uint8Array> {
    const part = this.#part.subarray(0, this.#filled);
    await this.#hash.update(part);
    this.#filled = 0;
    return part;
  }
}

/** SHA-256 of bytes that arrive in pieces. */
export class FileHash {
  readonly #digest = new crypto.DigestStream("SHA-256");
  readonly #writer = this.#digest.getWriter();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  async update(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length;
    await this.#writer.write(bytes);
  }

  /** In hex. */
  async digest(): Promise<string> {
    await this.#writer.close();
    return Buffer.from(await this.#digest.digest).toString("hex");
  }
}
