/**
 * One operation of the API: its route, its replies, and its documentation. The router and the OpenAPI document are both
 * made from the same list of these, so every route is documented, and every documented route exists.
 */
import type { Context } from "hono";
import type * as z from "zod";
import type { ApiError, ErrorCode } from "../../contract/api-error.ts";
import type { Caller, Permission } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import type { TtlCache } from "../kit/caches.ts";
import type { Readiness } from "../service/check-readiness.ts";
import type { Services } from "../service/services.ts";

export interface ApiDependencies {
  readonly services: Services;
  /** The services of slices, by name. */
  readonly slices: Readonly<Record<string, object>>;
  /** Creates the authentication, which caches callers for a while. `now`: epoch milliseconds. */
  readonly authentication: (now: () => number) => Authentication;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Returns the same promise; its work continues even if the caller disconnects. */
  readonly outlive: <T>(work: Promise<T>) => Promise<T>;
  /** Called with every exception that became a 500, or that ended an event stream. */
  readonly report: (error: unknown, requestId: string) => void;
}

export interface ApiTypes {
  Bindings: Env;
  Variables: Omit<ApiDependencies, "authentication"> & {
    /** The project; unset for an operation about an organisation, and without a key. */
    scope: Scope;
    /** Unset without a key. */
    caller: Caller;
    operation: Operation;
    /** Number of this change's entry in the audit log; null if it could not be written. */
    auditEntry: number | null;
    /** Whether the caller still has the permission. */
    stillAllowed: () => Promise<boolean>;
    /** The headers about the request limit. */
    limitHeaders: Readonly<Record<string, string>> | undefined;
    requestId: string;
    /** The latest result of `checkReadiness`, in this isolate. */
    readiness: TtlCache<Readiness>;
    /** All operations that are served. */
    operations: readonly Operation[];
  };
}
export type ApiContext = Context<ApiTypes>;

/** How the API finds out who sends a request: implemented by the slice that has accounts. */
export interface Authentication {
  /** Whether the request says who sends it: by a key, a session or otherwise. */
  isIdentified(context: ApiContext): boolean;
  /** The caller of the request; cached for at most `REMEMBERED_MS`. Throws a Refusal if there is none. */
  callerOf(context: ApiContext): Promise<Caller>;
  /** Counts the request against the limits of its caller. Throws a Refusal if there are too many. */
  count(context: ApiContext, caller: Caller): Promise<void>;
  /** The id of the organisation's project with this id or name, cached for the same time; null if there is none. */
  projectId(env: Env, orgId: string, nameOrId: string): Promise<string | null>;
}

/** How long a caller, or the id of a project's name, is cached. */
export const REMEMBERED_MS = 2000;

export interface RequestBody {
  /** Of the whole body, or of one line of it. */
  readonly schema: z.ZodType;
  /** Differences from the schema's own example. */
  readonly example?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: "application/jsonl" | "application/octet-stream";
}

export interface SuccessReply {
  /** 200 if absent. */
  readonly status?: 201 | 202;
  readonly description: string;
  /** `application/json` if absent. */
  readonly contentType?:
    | "application/jsonl"
    | "application/gzip"
    | "application/octet-stream"
    | "application/vnd.pypi.simple.v1+json"
    | "text/csv"
    | "text/event-stream"
    | "text/html"
    | "text/plain";
  /** Of the whole body, or of one line or event of it; null for an HTML page. */
  readonly schema: z.ZodType | null;
  /** Differences from the schema's own example; without a schema, the whole example. */
  readonly example?: unknown;
  /** Other content types that a caller can request, each with a description and an example. */
  readonly otherwise?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** When 204 without a body is returned instead. */
  readonly empty?: string;
  /** When 301 with a `location` is returned instead. */
  readonly moved?: string;
  /** When 503 with a body of the same schema is returned instead. */
  readonly unavailable?: string;
  /** True: `Range` returns a part of the body (206, or 416), and a matching `If-None-Match` returns nothing (304). */
  readonly ranged?: true;
  /** Important reply headers, with their meanings. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How the clients of another protocol read refusals, also of paths that do not exist next to the operation's own. */
export interface RefusalForm {
  readonly schema: z.ZodType;
  readonly bodyOf: (error: ApiError["error"]) => object;
  /** Why an operation of the protocol is not served, and what to do instead; null for any other path. */
  readonly unserved: (path: string) => { readonly status: 404 | 405 | 501; readonly message: string } | null;
}

export interface Operation {
  readonly id: string;
  /** Parameters are in braces, as in OpenAPI. */
  readonly route: `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`;
  readonly summary: string;
  /** Further description; paragraphs are separated by an empty line. */
  readonly description?: string;
  /** The scope that is needed, or one of several. `anybody` needs no key, `caller` accepts any key. */
  readonly permission: "anybody" | "caller" | Permission | readonly Permission[];
  /** True: a request without a key is served, too, and finds what is public. Its handler uses `viewerOf`. */
  readonly keyless?: true;
  /** True: the key may also be the password of HTTP basic authentication, with any user name. */
  readonly basic?: true;
  /** The body of a refusal for clients of another protocol; the API's `Error` if absent. */
  readonly refusals?: RefusalForm;
  /** The scheme of its bearer token in the document, if the token is not a key. */
  readonly proof?: "report_link" | "rollout_key";
  /** What it is about; `project` if absent. */
  readonly reach?: "organization";
  /** True: it is about a project, but a key of one project may not use it. */
  readonly whole?: true;
  /** True: the token of the run's trainer may be used instead of a key. */
  readonly trainer?: true;
  /**
   * True: it limits damage. It is carried out even if the audit log cannot be written, and waits only for other urgent
   * requests.
   */
  readonly urgent?: true;
  /** True: the change is not in the audit log: it occurs at every step of a training run, or for each part of a file. */
  readonly unlogged?: true;
  /** CPU of one request in milliseconds, by which requests are paced (request-pace.ts); 4 if absent. */
  readonly costMs?: number;
  readonly query?: z.ZodObject;
  /** Request headers that the operation reads, with their meanings. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: RequestBody;
  readonly reply: SuccessReply;
  /** Codes that this operation may return, beyond those that any request of its kind may get (openapi.ts). */
  readonly errors?: readonly ErrorCode[];
  readonly handle: (context: ApiContext) => Response | Promise<Response>;
}

export function isOpen({ permission }: Pick<Operation, "permission">): boolean {
  return permission === "anybody";
}

export function placeOf({ route }: Operation): { readonly method: string; readonly path: string } {
  const [method = "", path = ""] = route.split(" ");
  return { method, path };
}

/**
 * The service that the routes of a slice call. The Worker supplies it, because lists of operations are loaded in Node
 * too, where Durable Objects are not available. Throws if this deployment does not have the slice.
 */
export function serviceOf<Service extends object>(name: string): (context: ApiContext) => Service {
  return (context) => {
    const service = context.var.slices[name];
    if (service === undefined) throw new Error(`this deployment has no service ${name}`);
    return service as Service;
  };
}

/** The project that asks; null for a request without a key. */
export function viewerOf(context: ApiContext): Scope | null {
  const { scope }: Partial<ApiContext["var"]> = context.var;
  return scope ?? null;
}

/** A parameter of the path. */
export function pathParam(context: ApiContext, name: string): string {
  return context.req.param(name) ?? "";
}
