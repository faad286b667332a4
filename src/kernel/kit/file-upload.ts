/**
 * A file on its way into R2: hashed, and stored in parts, since a stream of unknown length cannot be put there whole.
 *
 * Invariants. One part is held in memory, as much of it as has come. A file of one part is put by itself; of a longer one nothing can be read before
 * `finish`. After `discard` nothing of it is left, whatever happened before. Parts but the last are of one size, as R2
 * wants them.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Subrequests } from "./subrequests.ts";

/** What came of a file: its size, and its SHA-256 in hex. */
export interface StoredFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** What a part begins with: most files end before it is full. */
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
    // Also of one in parts: of a `complete` that failed nobody knows whether it has made the object.
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

  /** The part as it is so far, hashed. It is good until the next `write`. */
  async #takePart(): Promise<Uint8Array> {
    const part = this.#part.subarray(0, this.#filled);
    await this.#hash.update(part);
    this.#filled = 0;
    return part;
  }
}

/** SHA-256 of bytes that come piece by piece. */
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
