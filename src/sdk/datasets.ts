/** Uploaded datasets; by id or name. */
import type { Deleted } from "../contract/endpoint.ts";
import type { DatasetRow, DatasetView } from "../contract/uploaded-dataset.ts";
import { type DatasetSource, isLarge, readSource } from "./dataset-body.ts";
import { DatasetUploads } from "./dataset-uploads.ts";
import type { CallOptions, DatasetOptions, RowQuery } from "./options.ts";
import { headersOf, search } from "./requests.ts";
import { Readable } from "./resource.ts";
import { uploadInParts } from "./upload-in-parts.ts";

export class Datasets extends Readable<DatasetView> {
  protected readonly path = "/datasets";

  /**
   * Uploads rows as a dataset. What is longer than 5 MiB is sent in parts: if the upload is interrupted, another call
   * with the same file, name and environment continues it, except for a stream or an async iterable, which is sent
   * from its beginning. At most one part of those is in memory. No request has a timeout unless `timeoutMs` is given.
   */
  async upload(source: DatasetSource, options: DatasetOptions = {}): Promise<DatasetView> {
    const read = await readSource(source, options.signal);
    if (isLarge(read)) return await uploadInParts(new DatasetUploads(this.requests), read, options);
    const { name, environment, environmentArgs, idempotencyKey, signal, timeoutMs = null } = options;
    const query = search({
      name,
      environment,
      environment_args: environmentArgs && JSON.stringify(environmentArgs),
    });
    return await this.requests.json(this.path + query, {
      method: "POST",
      headers: headersOf("application/jsonl", idempotencyKey),
      body: read,
      signal,
      timeoutMs,
    });
  }

  /** Every row of a dataset in its order, page after page. */
  rows(idOrName: string, query: RowQuery = {}, options: CallOptions = {}): AsyncGenerator<DatasetRow> {
    return this.requests.rows(`${this.at(idOrName)}/rows${search(query)}`, options);
  }

  /** Throws `conflict` while an unfinished run uses the dataset. */
  delete(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(this.at(idOrName), options);
  }
}
