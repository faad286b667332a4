/**
 * One operation of the API: where it stands, what it answers, and how it is told to the world. The router and the
 * OpenAPI page are both made from the same list of these, so no route goes undocumented and none is documented in vain.
 */
import type { Context } from "hono";
import type * as z from "zod";
import type { ErrorCode } from "../../contract/api-error.ts";
import type { Caller, Permission } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Services } from "../service/services.ts";

export interface ApiDependencies {
  readonly services: Services;
  /** What the routes of slices ask, by name. */
  readonly slices: Readonly<Record<string, object>>;
  /** What remembers for a while who sends requests. `now`: epoch milliseconds. */
  readonly authentication: (now: () => number) => Authentication;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** The same promise, whose work goes on though the caller has gone away. */
  readonly outlive: <T>(work: Promise<T>) => Promise<T>;
  /** Told of every exception that became a 500, or that ended an event stream. */
  readonly report: (error: unknown, requestId: string) => void;
}

export interface ApiTypes {
  Bindings: Env;
  Variables: Omit<ApiDependencies, "authentication"> & {
    /** The project; nobody's for an operation about an organisation. */
    scope: Scope;
    caller: Caller;
    /** The number of what the audit log says of this change; null where it could not be written. */
    auditEntry: number | null;
    /** Whether the caller would still be let in. */
    stillAllowed: () => Promise<boolean>;
    /** What the reply says of the limit on requests. */
    limitHeaders: Readonly<Record<string, string>> | undefined;
    requestId: string;
    /** All that are served. */
    operations: readonly Operation[];
  };
}
export type ApiContext = Context<ApiTypes>;

/** How the API learns who sends a request: what it is given by the slice that has accounts. */
export interface Authentication {
  /** Who sends the request; remembered for `REMEMBERED_MS` at most. Throws a Refusal for nobody. */
  callerOf(context: ApiContext): Promise<Caller>;
  /** Counts the request against the limits of its caller. Throws a Refusal where there are too many. */
  count(context: ApiContext, caller: Caller): Promise<void>;
  /** The id of the organisation's project that has this id or name, remembered for as long; null: there is none. */
  projectId(env: Env, orgId: string, nameOrId: string): Promise<string | null>;
}

/** How long what was found of a caller, or of a project's name, is remembered. */
export const REMEMBERED_MS = 2000;

export interface RequestBody {
  /** Of the body, or of one line of it. */
  readonly schema: z.ZodType;
  /** What differs from the schema's own example. */
  readonly example?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: "application/jsonl";
}

export interface SuccessReply {
  /** 200 when absent. */
  readonly status?: 201 | 202;
  readonly description: string;
  /** `application/json` when absent. */
  readonly contentType?:
    | "application/jsonl"
    | "application/gzip"
    | "text/csv"
    | "text/event-stream"
    | "text/html"
    | "text/plain";
  /** Of the body, or of one line or one event of it; null for a page that people read. */
  readonly schema: z.ZodType | null;
  /** What differs from the schema's own example; where there is no schema, the whole. */
  readonly example?: unknown;
  /** Other content types it comes in, for whoever asks so; each with what stands there, and an example. */
  readonly otherwise?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** When 204 is answered instead, with no body. */
  readonly empty?: string;
  /** True: `Range` gives a part of the body (206, or 416), and a known `If-None-Match` nothing (304). */
  readonly ranged?: true;
  /** Names and meanings of headers worth knowing. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  readonly id: string;
  /** Parameters in braces, as OpenAPI writes them. */
  readonly route: `${"GET" | "POST" | "PATCH" | "DELETE"} /${string}`;
  readonly summary: string;
  /** What the summary has no room for; paragraphs are set apart by an empty line. */
  readonly description?: string;
  /** What a caller must be allowed, one of them where there are several; `anybody` needs no key, `caller` any key. */
  readonly permission: "anybody" | "caller" | Permission | readonly Permission[];
  /** What its bearer token is, where that is no key: a scheme of the document. */
  readonly proof?: "report_link";
  /** What it is about; `project` when absent. */
  readonly reach?: "organization";
  /** True: it is about a project, and not for a key of one project. */
  readonly whole?: true;
  /** True: the token of the run's trainer is good for it, as a key is. */
  readonly trainer?: true;
  /** True: it limits damage, so it is carried out even where the audit log cannot be written, and waits only for other urgent ones. */
  readonly urgent?: true;
  /** True: a change that the audit log does not name, since it comes with every step of a training. */
  readonly unlogged?: true;
  /** CPU of one request, in milliseconds, by which requests are paced (request-pace.ts); 4 when absent. */
  readonly costMs?: number;
  readonly query?: z.ZodObject;
  /** Request headers with a meaning of their own, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: RequestBody;
  readonly reply: SuccessReply;
  /** Codes this operation may answer with, beyond those that any request of its kind may meet (openapi.ts). */
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
 * What the routes of a slice ask. The Worker hands it in: lists of operations are read in Node too, where no object can be
 * named. Throws where this deployment lacks the slice.
 */
export function serviceOf<Service extends object>(name: string): (context: ApiContext) => Service {
  return (context) => {
    const service = context.var.slices[name];
    if (service === undefined) throw new Error(`this deployment has no service ${name}`);
    return service as Service;
  };
}

/** A parameter of the path. */
export function pathParam(context: ApiContext, name: string): string {
  return context.req.param(name) ?? "";
}
