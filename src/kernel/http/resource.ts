/**
 * The operations that most resources have: create, list, get, update, delete. A resource is declared once. The ids,
 * paths, permissions and headers of its operations are derived from that. So are the steps of each request: its body is
 * read, the row that its path names is looked up (or the answer is 404), and the stored row is shown in the shape of
 * the API. Special operations of a resource are declared separately.
 */
import type * as z from "zod";
import { Deleted } from "../../contract/endpoint.ts";
import type { Permission } from "../../contract/identity.ts";
import type { Page, Position } from "../db/page.ts";
import type { CreateOptions, Made } from "../kit/idempotency.ts";
import type { Result } from "../messages/refusal.ts";
import {
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  nothingAt,
  readBody,
  readCreation,
  readQuery,
} from "./answer.ts";
import { unwrap } from "./errors.ts";
import { type ApiContext, type Operation, pathParam, type RequestBody, type SuccessReply } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

type Described = Pick<Operation, "summary" | "description" | "errors" | "urgent">;
type Reply = Pick<SuccessReply, "description" | "example">;
type BodyOf<Schema> = RequestBody & { readonly schema: Schema };
type Views = readonly { readonly id: string }[];

interface Resource<Row extends Position, Request extends z.ZodType, Patch extends z.ZodType> {
  /**
   * In words. For `webhook endpoint` the operations are `createWebhookEndpoint` …, and `object` is `webhook_endpoint`.
   */
  readonly noun: string;
  readonly path: `/v1/${string}`;
  readonly permissions: { readonly read: Permission; readonly write: Permission };
  readonly reach?: "organization";
  /** Schema of one in the shape of the API. */
  readonly schema: z.ZodType;
  /** The id in the example of a deleted one. */
  readonly example: string;
  /** A refusal if the caller may use none of the operations. */
  readonly refuse?: (context: ApiContext) => Result<never> | null;
  /** By id; also by name, if the resource has names. */
  readonly find: (context: ApiContext, nameOrId: string) => Promise<Row | null>;
  /** Rows in the shape of the API, in the same order. */
  readonly show: (context: ApiContext, rows: readonly Row[]) => Views | Promise<Views>;
  /** `conflict` and `idempotency_conflict` are among its errors without being listed. */
  readonly create: Described & {
    readonly body: BodyOf<Request>;
    /** `schema`: set if this reply has more than later ones. */
    readonly reply: Reply & { readonly schema?: z.ZodType };
    /** `once`: members that only this reply has. */
    readonly run: (
      context: ApiContext,
      request: z.output<Request>,
      options: CreateOptions,
    ) => Promise<Result<Made<Row> & { readonly once?: object }>>;
  };
  readonly list: Described & {
    readonly reply: { readonly description: string; readonly schema: z.ZodType };
    readonly run: (context: ApiContext, page: Page) => Promise<readonly Row[]>;
  };
  readonly get: Described & { readonly reply: Reply };
  readonly update: Described & {
    readonly body: BodyOf<Patch>;
    readonly reply: Reply;
    readonly run: (context: ApiContext, before: Row, patch: z.output<Patch>) => Promise<Result<Row>>;
  };
  readonly delete: Described & { readonly run: (context: ApiContext, row: Row) => Promise<Result<unknown>> };
}

export function resourceOperations<Row extends Position, Request extends z.ZodType, Patch extends z.ZodType>(
  resource: Resource<Row, Request, Patch>,
): readonly Operation[] {
  const { noun, path, permissions, reach, schema, example } = resource;
  const name = noun.replace(/(?:^| )(.)/g, (_, first: string) => first.toUpperCase());
  const read = { permission: permissions.read, ...(reach && { reach }) };
  const write = { permission: permissions.write, ...(reach && { reach }) };
  const { run: _create, ...create } = resource.create;
  const { run: _list, ...list } = resource.list;
  const { run: _update, ...update } = resource.update;
  const { run: _remove, ...remove } = resource.delete;
  const handle = handlersOf(resource);
  return [
    {
      ...{ id: `create${name}`, route: `POST ${path}`, ...write, headers: IDEMPOTENCY_HEADER, ...create },
      reply: { status: 201, schema, headers: CREATED_HEADERS, ...create.reply },
      errors: [...(create.errors ?? []), "conflict", "idempotency_conflict"],
      handle: handle.create,
    },
    { id: `list${name}s`, route: `GET ${path}`, ...read, query: PageQuery, ...list, handle: handle.list },
    {
      ...{ id: `get${name}`, route: `GET ${path}/{id}`, ...read, ...resource.get },
      reply: { schema, ...resource.get.reply },
      handle: handle.get,
    },
    {
      ...{ id: `update${name}`, route: `PATCH ${path}/{id}`, ...write, ...update },
      reply: { schema, ...update.reply },
      handle: handle.update,
    },
    {
      ...{ id: `delete${name}`, route: `DELETE ${path}/{id}`, ...write, ...remove },
      reply: { description: "Deleted", schema: Deleted, example: { object: objectOf(noun), id: example } },
      handle: handle.remove,
    },
  ];
}

function handlersOf<Row extends Position, Request extends z.ZodType, Patch extends z.ZodType>(
  resource: Resource<Row, Request, Patch>,
) {
  const { noun, path } = resource;
  const admit = (context: ApiContext) => {
    const refused = resource.refuse?.(context) ?? null;
    if (refused !== null) unwrap(refused);
  };
  const found = async (context: ApiContext) =>
    (await resource.find(context, pathParam(context, "id"))) ?? nothingAt(context, noun);
  const shown = async (context: ApiContext, row: Row) => {
    const [view] = await resource.show(context, [row]);
    if (view === undefined) throw new Error(`no view of the ${noun} ${row.id}`);
    return view;
  };
  return {
    async create(context: ApiContext): Promise<Response> {
      const { request, options } = await readCreation(context, resource.create.body.schema);
      admit(context);
      const { value, replayed, once } = unwrap(await resource.create.run(context, request, options));
      const view = { ...(await shown(context, value)), ...once };
      return creationReply(context, { folder: path, status: 201 }, view, replayed);
    },
    async list(context: ApiContext): Promise<Response> {
      admit(context);
      const { after, limit, order } = readQuery(context, PageQuery);
      const what = `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
      const position = await positionOf(after, what, (id) => resource.find(context, id));
      const rows = await resource.list.run(context, { after: position, limit: limit + 1, order });
      return context.json(pageOf(await resource.show(context, rows), limit));
    },
    async get(context: ApiContext): Promise<Response> {
      admit(context);
      return context.json(await shown(context, await found(context)));
    },
    async update(context: ApiContext): Promise<Response> {
      const patch = await readBody(context, resource.update.body.schema);
      admit(context);
      const after = unwrap(await resource.update.run(context, await found(context), patch));
      return context.json(await shown(context, after));
    },
    async remove(context: ApiContext): Promise<Response> {
      admit(context);
      const row = await found(context);
      unwrap(await resource.delete.run(context, row));
      return context.json({ object: objectOf(noun), id: row.id, deleted: true });
    },
  };
}

function objectOf(noun: string): string {
  return noun.replaceAll(" ", "_");
}
