/** The environments that runs can use. */
import type { EnvironmentView } from "../contract/run.ts";
import type { CallOptions } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Environments extends Resource {
  /** All of them on one page. */
  list(options: CallOptions = {}): PagePromise<EnvironmentView> {
    return this.requests.list("/environments", {}, options);
  }

  /** By `id` or `id@version`. */
  get(id: string, options: CallOptions = {}): Promise<EnvironmentView> {
    return this.requests.json(pathTo`/environments/${id}`, options);
  }
}
