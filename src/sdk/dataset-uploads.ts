/** Uploads of datasets in parts; by id. `datasets.upload` uses them for files of more than one part. */
import type { DatasetUploadPart, DatasetUploadProgress, DatasetUploadView } from "../contract/dataset-upload.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { DatasetView } from "../contract/uploaded-dataset.ts";
import type { CallOptions, DatasetUploadQuery, PostOptions } from "./options.ts";
import { posted } from "./requests.ts";
import { Collection } from "./resource.ts";

export interface DatasetUploadOptions {
  readonly name?: string | undefined;
  readonly environment?: string | undefined;
  readonly environment_args?: Readonly<Record<string, unknown>> | undefined;
  /** Size and SHA-256 (in hex) of the file, if they are known. */
  readonly bytes?: number | undefined;
  readonly sha256?: string | undefined;
}

export class DatasetUploads extends Collection<DatasetUploadView, DatasetUploadQuery> {
  protected readonly path = "/dataset-uploads";

  create(request: DatasetUploadOptions, options: PostOptions = {}): Promise<DatasetUploadView> {
    return this.requests.post(this.path, request, options);
  }

  /** With the parts that are stored. */
  get(id: string, options: CallOptions = {}): Promise<DatasetUploadProgress> {
    return this.requests.json(this.at(id), options);
  }

  /**
   * Sends part `number`, from 1: `part_bytes` bytes of the file, or the rest of it. A part that is sent again replaces
   * the part before. It has no timeout unless `timeoutMs` is given; the same for `complete`.
   */
  putPart(
    id: string,
    number: number,
    bytes: Blob | Uint8Array<ArrayBuffer>,
    { timeoutMs = null, ...options }: Partial<UnlimitedOptions> = {},
  ): Promise<DatasetUploadPart> {
    const headers = { "content-type": "application/octet-stream" };
    return this.requests.json(`${this.at(id)}/parts/${number}`, {
      ...options,
      method: "PUT",
      headers,
      body: bytes,
      timeoutMs,
    });
  }

  /** Makes a dataset of the parts. `bytes`: size of the file. A repeat returns the same dataset. */
  complete(
    id: string,
    bytes: number,
    { timeoutMs = null, ...options }: Partial<UnlimitedOptions> = {},
  ): Promise<DatasetView> {
    return this.requests.json(`${this.at(id)}/complete`, { ...options, ...posted({ bytes }), timeoutMs });
  }

  /** Deletes the upload and its parts; a dataset that it became stays. */
  delete(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(this.at(id), options);
  }
}

interface UnlimitedOptions extends Omit<CallOptions, "timeoutMs"> {
  readonly timeoutMs: number | null | undefined;
}
