/**
 * The base classes of the client's resources. A resource is one noun of the API, and each of its methods calls one
 * route. Most nouns are listed, read, created, changed and deleted in the same way; that is implemented here once.
 */
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, ListQuery, PageQuery, PostOptions } from "./options.ts";
import type { PagePromise, Requests } from "./requests.ts";

export abstract class Resource {
  protected readonly requests: Requests;

  constructor(requests: Requests) {
    this.requests = requests;
  }
}

/** Objects under one path. */
export abstract class Collection<View, Query extends PageQuery = ListQuery> extends Resource {
  protected abstract readonly path: string;

  /** Await it for one page, or iterate over it for every object, page after page. */
  list(query?: Query, options: CallOptions = {}): PagePromise<View> {
    return this.requests.list(this.path, query ?? {}, options);
  }

  protected at(id: string): string {
    return `${this.path}/${encodeURIComponent(id)}`;
  }
}

export abstract class Readable<View, Query extends PageQuery = ListQuery> extends Collection<View, Query> {
  /** By id, or by name if the object has one. */
  get(idOrName: string, options: CallOptions = {}): Promise<View> {
    return this.requests.json(this.at(idOrName), options);
  }
}

/**
 * `Created`: the reply of `create` if it has more than `View`, such as a secret that is shown only once. `Removed`: the
 * reply of `delete`; a job if there is much to delete.
 */
export abstract class Editable<
  View,
  Request,
  Patch,
  Created = View,
  Removed = Deleted,
  Query extends PageQuery = ListQuery,
> extends Readable<View, Query> {
  create(request: Request, options: PostOptions = {}): Promise<Created> {
    return this.requests.post(this.path, request, options);
  }

  /** Changes only the fields that are given. */
  update(idOrName: string, patch: Patch, options: CallOptions = {}): Promise<View> {
    return this.requests.patch(this.at(idOrName), patch, options);
  }

  /** If the reply to a delete was lost, it is sent again and may then throw `not_found`. */
  delete(idOrName: string, options: CallOptions = {}): Promise<Removed> {
    return this.requests.delete(this.at(idOrName), options);
  }
}
