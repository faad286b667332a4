/**
 * Permissions: every kind of caller requests each operation for its own things, for those of another project of the
 * same organisation, and for those of another organisation. The expected result follows from
 * authorization/permissions.ts and three rules: an unknown caller gets 401, a caller without permission 403, and a
 * thing out of reach gives 404, whether it exists or not.
 */
import { exports } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { isOpen, type Operation, placeOf } from "../../../src/kernel/http/operation.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { type Asker, callersOf } from "./authorization/callers.ts";
import {
  BY_WHOLE_KEYS,
  FOR_TRAINERS,
  mayDo,
  NOT_BY_SESSION,
  NOT_TO_ITS_OWN,
  OF_ALL_PROJECTS,
  OF_DEPLOYMENT,
  OF_ORGANIZATION,
  ONLY_BY_SESSION,
  OTHERS_TAKE,
  SHOWN_TO_OPERATORS,
  TAKES,
  TAKES_TOO,
} from "./authorization/permissions.ts";
import { type Asked, NAMED_INSIDE, REQUESTS, type Request } from "./authorization/requests.ts";
import { furnish, type Project } from "./authorization/resources.ts";
import { checked } from "./validate-responses.ts";

let own: Project;
let beside: Project;
let elsewhere: Project;
let callers: Asker[];

beforeAll(async () => {
  own = await furnish();
  [beside, elsewhere] = await Promise.all([furnish(own.scope.orgId), furnish()]);
  callers = await callersOf(own, beside);
});

const ORIGIN = "https://platform.test";
const ask = checked((path, init) => exports.default.fetch(new URL(path, ORIGIN).href, init));

test("every operation is requested below, and takes the permission that is written down by hand", () => {
  const known = OPERATIONS.map(({ id }) => id).sort();
  const hint = "add the operation to authorization/requests.ts, with the things it names, and to permissions.ts";
  expect(Object.keys(REQUESTS).sort(), hint).toEqual(known);
  expect(Object.fromEntries(OPERATIONS.map(({ id, permission }) => [id, declared(permission)])), hint).toEqual(TAKES);
  expect(OPERATIONS.flatMap(({ id, trainer }) => (trainer ? [id] : [])).sort()).toEqual([...FOR_TRAINERS].sort());
  expect(OPERATIONS.flatMap(({ id, reach }) => (reach ? [id] : [])).sort()).toEqual([...OF_ORGANIZATION].sort());
});

function declared(permission: Operation["permission"]) {
  return permission === "anybody" || permission === "caller" ? permission : [permission].flat();
}

const byId = new Map(OPERATIONS.map((operation) => [operation.id, operation]));

test.each(Object.entries(REQUESTS))("%s", async (id, request) => {
  const operation = byId.get(id);
  if (operation === undefined) throw new Error(`there is no operation ${id}`);
  const wrong: string[] = [];
  for (const [index, caller] of callers.entries()) {
    const targets = targetsOf(operation, caller, index);
    const met = await Promise.all(targets.map((target) => askOne(operation, request, caller, target)));
    for (const [at, target] of targets.entries()) {
      const { expected, got } = met[at] ?? { expected: "an answer", got: "none" };
      if (got !== expected) wrong.push(`${caller.name}, ${whose(target)}: ${got}, and not ${expected}`);
    }
  }
  expect(wrong).toEqual([]);
});

/**
 * For which projects' things a caller asks. The refusal of a permission is one check that comes before any lookup, so
 * only some callers test it for all projects, at each operation others.
 */
function targetsOf(operation: Operation, caller: Asker, index: number): readonly Project[] {
  if (isOpen(operation)) return index % 4 === 0 ? [own] : [];
  const isRefused = caller.may === null || !mayDoThis(operation.id, caller);
  return isRefused && (index + OPERATIONS.indexOf(operation)) % 6 > 0 ? [own] : [own, beside, elsewhere];
}

test.each(NAMED_INSIDE)("%s finds nothing of another owner that a body or a query names", async (id, askFor) => {
  const operation = byId.get(id);
  const admin = callers.find(({ name }) => name === "a key for admin");
  if (operation === undefined || admin === undefined) throw new Error("nobody asks");
  for (const other of [beside, elsewhere]) {
    const reply = await send(operation, askFor(own.things, other.things), admin, undefined);
    const text = await reply.text();
    expect([400, 404], text).toContain(reply.status);
    const runs = await (await own.api.ask("/v1/runs?limit=100")).text();
    for (const one of idsOutOfReach(admin, undefined)) expect(runs).not.toContain(one);
  }
  // The same request succeeds for one's own things.
  const met = await send(operation, askFor(own.things, own.things), admin, undefined);
  expect(met.status, await met.text()).toBeLessThan(300);
});

test("no operation accepts a cookie if another site's page made the browser send it", async () => {
  const browser = callers.find(({ cookie, may }) => cookie !== undefined && may?.includes("admin"));
  const headers = { cookie: browser?.cookie ?? "", origin: "https://other.test", "sec-fetch-site": "cross-site" };
  const guarded = OPERATIONS.filter((operation) => !isOpen(operation));
  const met = guarded.map(async (operation) => {
    const path = placeOf(operation).path.replaceAll(/\{\w+\}/g, "x");
    return [operation.id, (await ask(path, { method: placeOf(operation).method, headers })).status];
  });
  expect(await Promise.all(met)).toEqual(guarded.map(({ id }) => [id, 403]));
});

function whose(target: Project): string {
  if (target === own) return "for its own";
  return target === beside ? "for the other project" : "for another organisation";
}

/** One request: the project it is for, and the project that its header names. */
interface Aim {
  readonly target: Project;
  readonly named: Project | undefined;
  /** It names a thing of the target. */
  readonly thing: boolean;
}

async function askOne(operation: Operation, request: Request, caller: Asker, target: Project) {
  const other = target === own ? elsewhere : own;
  const thing = request.inBody ?? pathOf(request.ask(target.things)) !== pathOf(request.ask(other.things));
  // A request that names no thing of a project names the project itself.
  const named = caller.names ?? (thing || target === own ? undefined : target);
  const expected = expectedOf(operation, request, caller, { target, named, thing });
  const anew = expected < 300 && request.anew !== undefined ? await request.anew(target) : {};
  const asked = request.ask({ ...target.things, ...anew });
  const reply = await send(operation, asked, caller, named);
  const text = await reply.text();
  const said = JSON.stringify(asked);
  const leaked = idsOutOfReach(caller, named).filter((id) => text.includes(id) && !said.includes(id));
  return { expected: String(expected), got: [reply.status, ...leaked].join(" with ") };
}

function pathOf({ path }: Asked): string | undefined {
  return path.split("?")[0];
}

/** The status that follows from the rules. */
function expectedOf(operation: Operation, request: Request, caller: Asker, aim: Aim): number {
  const { id, reply } = operation;
  const takes = TAKES[id] ?? [];
  const ok = request.status ?? reply.status ?? 200;
  if (takes === "anybody") return ok;
  if (caller.may === null) return toUnknown(operation, caller);
  const refused = mayDoThis(id, caller) ? byWay(id, caller) : 403;
  if (refused !== null) return refused;
  if (isAnybodys(id, caller)) return ok;
  if (OF_ORGANIZATION.includes(id)) return inOrganization(id, caller, aim) ?? ok;
  if (caller.bound === null && aim.named === undefined) return 400;
  if (!isInReach(caller, aim)) return 404;
  return mayDo(caller.may, TAKES_TOO[id] ?? "caller") ? ok : 403;
}

/** Without a key, some operations find what is public; all things here are private. */
function toUnknown({ keyless }: Operation, { token, cookie }: Asker): number {
  return keyless && token === null && cookie === undefined ? 404 : 401;
}

/** True if the owner does not matter. */
function isAnybodys(id: string, { may }: Asker): boolean {
  return OF_DEPLOYMENT.includes(id) || (SHOWN_TO_OPERATORS.includes(id) && may?.includes("operator") === true);
}

/** The status that depends on whether a browser or a key makes the request; null: no such difference. */
function byWay(id: string, { cookie }: Asker): number | null {
  if (cookie === undefined) return ONLY_BY_SESSION.includes(id) ? 404 : null;
  return NOT_BY_SESSION.includes(id) ? 403 : null;
}

/** The status that refuses it; null: none. */
function inOrganization(id: string, caller: Asker, { thing, target }: Aim): number | null {
  if (thing && !(reaches(caller, target) && mayDo(caller.may ?? [], OTHERS_TAKE[id] ?? "caller"))) return 404;
  return NOT_TO_ITS_OWN.includes(id) && caller.bound !== null ? 403 : null;
}

function mayDoThis(id: string, { may, trains, bound }: Asker): boolean {
  if (bound !== null && [...OF_ALL_PROJECTS, ...BY_WHOLE_KEYS].includes(id)) return false;
  return trains === undefined ? mayDo(may ?? [], TAKES[id] ?? []) : FOR_TRAINERS.includes(id);
}

function isInReach(caller: Asker, { target, named, thing }: Aim): boolean {
  const project = named ?? caller.bound;
  if (project === null || !reaches(caller, project)) return false;
  if (thing && target !== project) return false;
  return caller.trains === undefined || target.things.training === caller.trains;
}

function reaches({ bound }: Asker, project: Project): boolean {
  return bound === null ? project.scope.orgId === own.scope.orgId : project === bound;
}

function send(operation: Operation, { path, body, once, bearer }: Asked, caller: Asker, named: Project | undefined) {
  const lines = typeof body === "string";
  const shown = bearer ?? caller.token;
  const headers = {
    // Wrong keys are counted by address.
    "cf-connecting-ip": crypto.randomUUID(),
    ...(once && { "idempotency-key": crypto.randomUUID() }),
    // The headers that a page of the platform itself sends with its cookie.
    ...{ origin: ORIGIN, "sec-fetch-site": "same-origin" },
    ...(caller.cookie !== undefined && { cookie: caller.cookie }),
    ...(shown !== null && { authorization: `Bearer ${shown}` }),
    ...(named !== undefined && { "rollcall-project": named.scope.projectId }),
    ...(body !== undefined && { "content-type": operation.body?.contentType ?? "application/json" }),
  };
  const sent = lines ? body : JSON.stringify(body);
  const options = { method: placeOf(operation).method, headers, redirect: "manual" } as const;
  return ask(path, { ...options, ...(sent !== undefined && { body: sent }) });
}

/** Ids that the reply must not contain. Batches of the same rows have the same digests. */
function idsOutOfReach(caller: Asker, named: Project | undefined): string[] {
  const out = [own, beside, elsewhere].filter((one) => one !== named && !reaches(caller, one));
  return out.flatMap(({ things }) => {
    const { organization: _, batch_sha256: _batch, object_sha256: _object, ...ids } = things;
    return Object.values(ids);
  });
}
