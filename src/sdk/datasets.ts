/** Uploaded datasets; by id or name. */
import type { Deleted } from "../contract/endpoint.ts";
import type { DatasetRow, DatasetView } from "../contract/uploaded-dataset.ts";
import { type DatasetSource, datasetBodyOf } from "./dataset-body.ts";
import type { CallOptions, DatasetOptions, RowQuery } from "./options.ts";
import { headersOf, search } from "./requests.ts";
import { Readable } from "./resource.ts";

export class Datasets extends Readable<DatasetView> {
  protected readonly path = "/datasets";

  /**
   * Uploads rows as a dataset. An upload has no timeout unless `timeoutMs` is given. A stream or an async iterable is
   * read while it is sent and never sent twice; browsers support that over HTTP/2 only, otherwise use a Blob.
   */
  upload(source: DatasetSource, options: DatasetOptions = {}): Promise<DatasetView> {
    const { name, environment, environmentArgs } = options;
    const query = search({
      name,
      environment,
      environment_args: environmentArgs && JSON.stringify(environmentArgs),
    });
    const { idempotencyKey, signal, timeoutMs = null } = options;
    return this.requests.json(this.path + query, {
      method: "POST",
      headers: headersOf("application/jsonl", idempotencyKey),
      ...datasetBodyOf(source),
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
