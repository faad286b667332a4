/**
 * The Worker's side of `rollcall deploy backup`, `restore` and `repair`.
 *
 * Invariants. Only a holder of ROLLCALL_SECRET can call it; for anybody else its paths do not exist. A backup writes
 * nothing. A restore writes only while it is under way, and begins only if the deployment has no organisation. After
 * the first object was started it writes nothing more. A repair writes only what rows of runs lack.
 */
import * as z from "zod";
import { databaseOf } from "../kernel/db/database.ts";
import { readSchemaLevel } from "../kernel/db/schema-level.ts";
import { Refusal, refusalOfIssues } from "../kernel/http/errors.ts";
import { answerOperator, NOTHING } from "../kernel/http/operator.ts";
import { secretName } from "../kernel/kit/secrets.ts";
import {
  beginFile,
  endFile,
  listFiles,
  noteRestored,
  noteRestoring,
  readFile,
  readRestores,
  writeFile,
  writePart,
} from "./files.ts";
import { readStorage, startObjects, writeStorage } from "./objects.ts";
import { hasOrganizations, listObjects, listTables, readRows, writeRows } from "./queries.ts";
import { isRepairPlace, repairRuns } from "./repair.ts";
import {
  BACKUP_PATH,
  type DeploymentState,
  OBJECT_KINDS,
  ObjectKind,
  type RestoreBegun,
  StartedObjects,
  UploadedParts,
  WrittenRows,
  WrittenStorage,
} from "./wire.ts";

interface Ask {
  readonly env: Env;
  readonly request: Request;
  readonly query: URLSearchParams;
}

type Handler = (ask: Ask) => Promise<Response>;

const Count = z.coerce.number().int().min(0).default(0);

const READS: Readonly<Record<string, Handler>> = {
  "GET ": async ({ env }) => Response.json(await stateOf(env)),
  "GET /rows": async ({ env, query }) => {
    const d1 = d1Of(env, countOf(query, "database"));
    const table = await tableOf(d1, query.get("table") ?? "");
    return Response.json(await readRows(d1, table, countOf(query, "after")));
  },
  "GET /objects": async ({ env, query }) => {
    const kind = parsed(z.enum(OBJECT_KINDS), query.get("kind"), "kind");
    const d1 = d1Of(env, countOf(query, "database"));
    return Response.json(await listObjects(d1, kind, countOf(query, "after")));
  },
  "GET /storage": async ({ env, query }) => {
    const kind = parsed(ObjectKind, query.get("kind"), "kind");
    return Response.json(await readStorage(env, kind, textOf(query, "name"), query.get("after")));
  },
  "GET /files": async ({ env, query }) => Response.json(await listFiles(env, query.get("after"))),
  "GET /file": async ({ env, query }) => await readFile(env, textOf(query, "key"), countOf(query, "offset")),
};

/** Only during a restore, before its first object is started. */
const WRITES: Readonly<Record<string, Handler>> = {
  "POST /rows": async ({ env, request }) => {
    const rows = parsed(WrittenRows, await request.json());
    const d1 = d1Of(env, rows.database ?? 0);
    await tableOf(d1, rows.table);
    await writeRows(d1, rows);
    return new Response(null, { status: 204 });
  },
  "POST /storage": async ({ env, request }) =>
    Response.json({ written: await writeStorage(env, parsed(WrittenStorage, await request.json())) }),
  "PUT /file": async ({ env, request, query }) => {
    await writeFile(env, textOf(query, "key"), textOf(query, "sha256"), await request.arrayBuffer());
    return new Response(null, { status: 204 });
  },
  "POST /upload": async ({ env, query }) => Response.json({ upload: await beginFile(env, textOf(query, "key")) }),
  "PUT /part": async ({ env, request, query }) => {
    const place = { key: textOf(query, "key"), upload: textOf(query, "upload"), part: countOf(query, "part") };
    return Response.json(await writePart(env, place, await request.arrayBuffer()));
  },
  "POST /uploaded": async ({ env, request, query }) => {
    await endFile(env, textOf(query, "key"), textOf(query, "upload"), parsed(UploadedParts, await request.json()));
    return new Response(null, { status: 204 });
  },
};

/** Only during a restore, after everything is written. */
const STARTS: Readonly<Record<string, Handler>> = {
  "POST /start": async ({ env, request, query }) => {
    const objects = parsed(StartedObjects, await request.json());
    await noteRestoring(env, { of: textOf(query, "of"), starting: true });
    await startObjects(env, objects);
    return new Response(null, { status: 204 });
  },
  "POST /end": async ({ env, query }) => {
    await noteRestored(env, textOf(query, "of"));
    return new Response(null, { status: 204 });
  },
};

/** Not during a restore. */
async function repair({ env, query }: Ask): Promise<Response> {
  const { restoring } = await readRestores(env);
  if (restoring !== null) throw new Refusal(refused(`the backup ${restoring.of} is being restored`));
  const after = query.get("after");
  if (after !== null && !isRepairPlace(after)) {
    throw new Refusal({
      code: "invalid_request",
      message: `after: ${after} is not a place of a repair`,
      param: "after",
    });
  }
  return Response.json(await repairRuns(env, after, Date.now()));
}

/** Null if the request is not for this exchange. */
export function serveBackup(request: Request, env: Env): Promise<Response> | null {
  const url = new URL(request.url);
  const path = url.pathname;
  if (path !== BACKUP_PATH && !path.startsWith(`${BACKUP_PATH}/`)) return null;
  const name = `${request.method} ${path.slice(BACKUP_PATH.length)}`;
  const what = `${request.method} ${path}`;
  return answerOperator({ request, env, what }, () => handle({ env, request, query: url.searchParams }, name));
}

async function handle(ask: Ask, name: string): Promise<Response> {
  const read = READS[name];
  if (read !== undefined) return await read(ask);
  if (name === "POST /repair") return await repair(ask);
  const backup = textOf(ask.query, "of");
  if (name === "POST /begin") return await beginRestore(ask.env, backup);
  const write = WRITES[name] ?? STARTS[name];
  if (write === undefined) throw new Refusal(NOTHING);
  const { restoring, restored } = await readRestores(ask.env);
  // The reply to the end of a restore was lost.
  if (name === "POST /end" && restored === backup) return new Response(null, { status: 204 });
  if (restoring?.of !== backup) throw new Refusal(refused(`the backup ${backup} is not being restored`));
  if (restoring.starting && name in WRITES) throw new Refusal(refused("the restored objects have begun to work"));
  return await write(ask);
}

async function beginRestore(env: Env, backup: string): Promise<Response> {
  const { restoring, restored } = await readRestores(env);
  if (restoring !== null) {
    if (restoring.of !== backup) throw new Refusal(refused(`the backup ${restoring.of} is being restored`));
    return begun(restoring.starting ? "starts" : "everything");
  }
  if (restored === backup) return begun("nothing");
  if (!(await stateOf(env)).empty) throw new Refusal(refused("the deployment already has an organisation"));
  await noteRestoring(env, { of: backup, starting: false });
  return begun("everything");
}

function begun(left: RestoreBegun["left"]): Response {
  return Response.json({ left } satisfies RestoreBegun);
}

async function stateOf(env: Env): Promise<DeploymentState> {
  const database = databaseOf(env);
  const [levels, { restoring }, lists] = await Promise.all([
    database.each(readSchemaLevel),
    readRestores(env),
    database.each(listTables),
  ]);
  const [schema = null] = levels;
  const behind = levels.findIndex((level) => level !== schema);
  if (behind !== -1) {
    const message = `D1 database ${behind} has the migration ${levels[behind] ?? "none"}, and database 0 ${schema ?? "none"}`;
    throw new Refusal(refused(`${message}: deploy this release first`));
  }
  const [tables = []] = lists;
  const empty = !tables.includes("organizations") || !(await hasOrganizations(database));
  const databases = database.all.length;
  return { schema, secret: secretName(env), restoring: restoring?.of ?? null, empty, tables, databases };
}

function d1Of(env: Env, number: number): D1Database {
  const database = databaseOf(env);
  if (number < database.all.length) return database.at(number);
  const message = `database: this deployment has no D1 database ${number}: it has ${database.all.length}`;
  throw new Refusal({ code: "invalid_request", message, param: "database" });
}

async function tableOf(d1: D1Database, named: string): Promise<string> {
  if ((await listTables(d1)).includes(named)) return named;
  throw new Refusal({ code: "invalid_request", message: `table: ${named} does not exist`, param: "table" });
}

function refused(message: string) {
  return { code: "conflict", message, param: null } as const;
}

function textOf(query: URLSearchParams, name: string): string {
  return parsed(z.string().min(1), query.get(name) ?? "", name);
}

function countOf(query: URLSearchParams, name: string): number {
  return parsed(Count, query.get(name) ?? undefined, name);
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, name?: string): z.output<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const refusal = refusalOfIssues(read.error, value);
  throw name === undefined ? refusal : new Refusal({ ...refusal.failure, param: name });
}
