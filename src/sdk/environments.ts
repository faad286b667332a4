/** The environments that runs can use, and those that organisations publish; a published one is `owner/name`. */
import type { Deleted } from "../contract/endpoint.ts";
import type { EnvironmentResults } from "../contract/environment-results.ts";
import type {
  GrantView,
  PublishedVersion,
  PublishedVersionPatch,
  TagView,
  Visibility,
} from "../contract/published-environment.ts";
import type { EnvironmentView } from "../contract/run.ts";
import type { CallOptions, PageQuery, PostOptions } from "./options.ts";
import { headersOf, type PagePromise, pathTo, search } from "./requests.ts";
import { Readable } from "./resource.ts";

export interface EnvironmentQuery extends PageQuery {
  /** Text in the name or the description. */
  readonly search?: string | undefined;
  /** Only environments that it has published. */
  readonly owner?: string | undefined;
}

export interface PublishOptions extends PostOptions {
  /** Of a new environment; default `private`. It does not change. */
  readonly visibility?: Visibility | undefined;
  /** Publish it although its validation finds errors; its page shows this for ever. */
  readonly allowFailing?: boolean | undefined;
  /** A tag to move to this version, besides `latest`. */
  readonly tag?: string | undefined;
  /** Of a wheel: its file name, and its owner, by default the name of the organisation. */
  readonly file?: string | undefined;
  readonly owner?: string | undefined;
}

/** `owner/name` may have a version, a range or a tag: `owner/name@1.0.1`, `@^1`, `@latest`. */
export class Environments extends Readable<EnvironmentView, EnvironmentQuery> {
  protected readonly path = "/environments";

  /**
   * Publishes the bytes of an npm package (.tgz) or of a wheel (.whl) as one version; the same code again returns the version that exists.
   * It has no timeout unless `timeoutMs` is given.
   */
  publish(bytes: Uint8Array<ArrayBuffer>, options: PublishOptions = {}): Promise<PublishedVersion> {
    const { visibility, allowFailing: allow_failing, tag, file, owner, ...call } = options;
    const { idempotencyKey, signal, timeoutMs = null } = call;
    return this.requests.json(this.path + search({ visibility, allow_failing, tag, file, owner }), {
      method: "POST",
      headers: headersOf("application/octet-stream", idempotencyKey),
      body: bytes,
      signal,
      timeoutMs,
    });
  }

  /** The versions of `owner/name`, the newest first. */
  versions(name: string, query: PageQuery = {}, options: CallOptions = {}): PagePromise<PublishedVersion> {
    return this.requests.list(pathTo`/environments/${name}/versions`, query, options);
  }

  /** The results of the project's newest runs, for each version and model. `name`: without a version. */
  results(name: string, options: CallOptions = {}): Promise<EnvironmentResults> {
    return this.requests.json(pathTo`/environments/${name}/results`, options);
  }

  /** The README as Markdown. Throws `not_found` if the version has none. */
  readme(id: string, options: CallOptions = {}): Promise<string> {
    return this.requests.text(pathTo`/environments/${id}/readme`, options);
  }

  /** The bytes of the package: a .tgz, or the wheel of a Python environment. */
  package(id: string, options: CallOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    return this.requests.read(pathTo`/environments/${id}/package`, options, async (reply) => {
      return new Uint8Array(await reply.arrayBuffer());
    });
  }

  /** Yanks or deprecates one version, `owner/name@1.0.1`, or undoes it. Changes only the fields that are given. */
  update(id: string, patch: PublishedVersionPatch, options: CallOptions = {}): Promise<PublishedVersion> {
    return this.requests.patch(this.at(id), patch, options);
  }

  /** Points a tag of `owner/name` to a version. */
  moveTag(name: string, tag: string, version: string, options: CallOptions = {}): Promise<TagView> {
    return this.requests.put(pathTo`/environments/${name}/tags/${tag}`, { version }, options);
  }

  deleteTag(name: string, tag: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathTo`/environments/${name}/tags/${tag}`, options);
  }

  /** What the project lets `owner/name` use. */
  getGrant(name: string, options: CallOptions = {}): Promise<GrantView> {
    return this.requests.json(pathTo`/environments/${name}/grant`, options);
  }

  /** Replaces what the project lets `owner/name` use: `["secret:SEARCH_KEY"]`. */
  setGrant(name: string, needs: readonly string[], options: CallOptions = {}): Promise<GrantView> {
    return this.requests.put(pathTo`/environments/${name}/grant`, { needs }, options);
  }

  /** For an operator: deletes the code of one version. */
  takeDown(id: string, reason: string, options: PostOptions = {}): Promise<PublishedVersion> {
    return this.requests.post(pathTo`/environments/${id}/take-down`, { reason }, options);
  }
}
