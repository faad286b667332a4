/** The whole Worker through its HTTP interface, with a tenant of its own; and access to its objects. */
import { runInDurableObject } from "cloudflare:test";
import { DurableObject as AnyObject, env, exports } from "cloudflare:workers";
import { expect } from "vitest";
import type { CancelReason } from "../../src/contract/errors.ts";
import type { EvalRequestInput } from "../../src/contract/eval-request.ts";
import type { EventName } from "../../src/contract/event-names.ts";
import { ResultRow, RolloutView, type RunCounts, RunView } from "../../src/contract/run.ts";
import type { Scope } from "../../src/contract/scope.ts";
import { type ParsedId, parseId, rolloutId } from "../../src/core/ids.ts";
import type { Rollout } from "../../src/core/rollout/rollout.ts";
import { RunObject } from "../../src/index.ts";
import { shardName } from "../../src/kernel/kit/names.ts";
import { idMac } from "../../src/kernel/kit/secrets.ts";
import type { RolloutSpec, RolloutStanding } from "../../src/kernel/messages/wire.ts";
import { RolloutObject } from "../../src/kernel/rollout/object.ts";
import { admit } from "../accounts/admit.ts";
import type { Fault } from "../fakes/scripted-model.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { checked } from "./http/validate-responses.ts";
import type { Inquiry, Kept, Named, Release, Script, Seen } from "./script.ts";

export type RunOptions = Omit<EvalRequestInput, "endpoint"> & Partial<Pick<EvalRequestInput, "endpoint">>;

export interface StreamedEvent {
  readonly id: number;
  readonly event: EventName;
  readonly data: Record<string, unknown>;
}

export type Inside<Instance, T> = (instance: Instance, state: DurableObjectState) => T | Promise<T>;

export interface TestApi {
  readonly scope: Scope;
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>;
  readonly post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Response>;
  readonly start: (request: RunOptions) => Promise<RunView>;
  readonly run: (id: string) => Promise<RunView>;
  /** Reads the run's events to their end: resolves when the run has ended. */
  readonly ended: (id: string) => Promise<RunView>;
  /** Starts a run and reads it until it has ended. */
  readonly finish: (request: RunOptions) => Promise<RunView>;
  /** Every event after `after`, to the end of the stream. */
  readonly events: (id: string, after?: number) => Promise<StreamedEvent[]>;
  /** The rows of every page, by following the links. */
  readonly pages: (id: string, query?: string) => Promise<ResultRow[][]>;
  readonly results: (id: string, query?: string) => Promise<ResultRow[]>;
  readonly rollout: (id: string) => Promise<RolloutView>;
  readonly runStub: (id: string) => DurableObjectStub;
  /** The object that plays the rollout, once it was dispatched. */
  readonly rolloutStub: (id: string) => Promise<DurableObjectStub>;
  /** Runs inside the run's object, with its instance and its storage. */
  readonly inRun: <T>(id: string, use: Inside<RunObject, T>) => Promise<T>;
  readonly inRollout: <T>(id: string, use: Inside<OneRollout, T>) => Promise<T>;
}

/** `orgId`: an organisation that already has a project. */
export async function openPlatform(orgId?: string): Promise<TestApi> {
  const unique = crypto.randomUUID();
  const scope = { orgId: orgId ?? `org_${unique}`, projectId: `pj_${unique}` };
  const token = await admit(scope);
  const ask: TestApi["ask"] = checked((path, init = {}) =>
    exports.default.fetch(new URL(path, "http://platform.test").href, {
      ...init,
      headers: { authorization: `Bearer ${token}`, ...init.headers },
    }),
  );
  const post: TestApi["post"] = (path, body, headers = {}) =>
    ask(path, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
    });
  const start: TestApi["start"] = async (request) => {
    const response = await post("/v1/runs", { endpoint: { base_url: env.MODEL_URL }, ...request });
    if (response.status !== 202) throw new Error(await response.text());
    return RunView.parse(await response.json());
  };
  const run: TestApi["run"] = async (id) => {
    const response = await ask(`/v1/runs/${id}`);
    if (response.status !== 200) throw new Error(await response.text());
    return RunView.parse(await response.json());
  };
  const events: TestApi["events"] = async (id, after = 0) =>
    parseEvents(await (await ask(`/v1/runs/${id}/events?after=${after}`)).text());
  const ended: TestApi["ended"] = async (id) => {
    await inTime(events(id), async () => `${id} does not end: ${JSON.stringify(await run(id))}`);
    return run(id);
  };
  const pages: TestApi["pages"] = (id, query = "") => readPages(ask, `/v1/runs/${id}/results?${query}`);
  const name = (id: string) => `org/${scope.orgId}/${scope.projectId}/${id}`;
  // Tests may replace it.
  const { RUN } = env;
  const runStub = (id: string): DurableObjectStub => env.RUN.getByName(name(id));
  const rolloutStub: TestApi["rolloutStub"] = async (id) => {
    const { runId } = placeOfRollout(id);
    const shard = await inside(RUN.getByName(name(runId)), RunObject, (_, { storage }) => shardOf(storage, id));
    return env.ROLLOUT.getByName(shardName(scope, runId, shard));
  };
  return {
    scope,
    ask,
    post,
    start,
    run,
    ended,
    finish: async (request) => ended((await start(request)).id),
    events,
    pages,
    results: async (id, query) => (await pages(id, query)).flat(),
    rollout: async (id) => RolloutView.parse(await (await ask(`/v1/rollouts/${id}`)).json()),
    runStub,
    rolloutStub,
    inRun: (id, use) => inside(runStub(id), RunObject, use),
    inRollout: async (id, use) =>
      inside(await rolloutStub(id), RolloutObject, (object, state) => use(new OneRollout(object, id), state)),
  };
}

/** One rollout in the object that plays it. Clock and alarm are the object's. */
export class OneRollout {
  readonly object: RolloutObject;
  readonly #id: string;

  constructor(object: RolloutObject, id: string) {
    this.object = object;
    this.#id = id;
  }

  set now(now: () => number) {
    this.object.now = now;
  }

  alarm(): Promise<void> {
    return this.object.alarm();
  }

  async start(spec: RolloutSpec, sentAt: number): Promise<RolloutStanding | undefined> {
    return (await this.object.start([spec], sentAt))[0];
  }

  async ask(): Promise<RolloutStanding | undefined> {
    return (await this.object.ask([this.#id]))[0];
  }

  async cancel(reason: CancelReason): Promise<RolloutStanding | undefined> {
    return (await this.object.cancel([{ rollout_id: this.#id, reason }]))[0];
  }

  read(): Rollout | null {
    return this.object.read(this.#id);
  }
}

function placeOfRollout(id: string): Extract<ParsedId, { kind: "rollout" }> {
  const parsed = parseId(id, idMac(env.ROLLCALL_SECRET));
  if (parsed?.kind !== "rollout") throw new TypeError(`${id} is not the id of a rollout`);
  return parsed;
}

/** 0, a number that no shard has, if the rollout was never dispatched. */
function shardOf({ sql }: DurableObjectStorage, id: string): number {
  const tables = sql.exec("select 1 from sqlite_master where name = 'rollouts'").toArray();
  if (tables.length === 0) return 0;
  return Number(sql.exec("select host from rollouts where id = ?", id).toArray()[0]?.["host"] ?? 0);
}

/**
 * Whether the object belongs to this organisation, project, run or other thing. A spy on its class also sees the
 * objects of other files, because they share the worker and keep running during a test.
 */
export function isOf(id: string, object: unknown): boolean {
  if (!(object instanceof AnyObject)) return false;
  const { id: own }: DurableObjectState = Reflect.get(object, "ctx");
  return own.name?.split("/").includes(id) ?? false;
}

export function inside<Instance, T>(
  stub: DurableObjectStub,
  kind: new (state: DurableObjectState, env: Env) => Instance,
  use: Inside<Instance, T>,
): Promise<T> {
  return runInDurableObject<DurableObject, T>(stub, (instance: unknown, state) => {
    if (!(instance instanceof kind)) throw new TypeError(`the object is no ${kind.name}`);
    return use(instance, state);
  });
}

/** The requests that the model got under this name; waits for the first `atLeast`. */
export async function requestsOf(model: string, atLeast = 0): Promise<Seen[]> {
  const requests = async (count: number): Promise<Seen[]> =>
    JSON.parse(await told({ requests_of: model, at_least: count }));
  return await inTime(requests(atLeast), async () => {
    const keys = (await requests(0)).map(({ idempotency_key }) => idempotency_key);
    return `the model did not get ${atLeast} requests: ${JSON.stringify(keys)}`;
  });
}

/** What is waited for; if it hangs, an error that says how far it came. */
async function inTime<T>(awaited: Promise<T>, describe: () => Promise<string>): Promise<T> {
  const hang = Promise.withResolvers<never>();
  const giveUp = () => describe().then((text) => hang.reject(new Error(text)), hang.reject);
  const timer = setTimeout(giveUp, WAIT_HANGS_MS);
  return await Promise.race([awaited, hang.promise]).finally(() => clearTimeout(timer));
}

/** Lets a held script (script.ts) answer the next request with this key; with the fault, if one is given. */
export async function release(key: string, fault?: Fault): Promise<void> {
  await told({ idempotency_key: key, ...(fault && { fault }) });
}

/** The name of a model with this script, which may be longer than a name. */
export async function keep(script: Script): Promise<string> {
  await told({ keep: script.salt, script });
  return JSON.stringify({ named: script.salt } satisfies Named);
}

/** The model's answer to the test itself. */
async function told(order: Inquiry | Release | Kept): Promise<string> {
  const response = await fetch(`${env.MODEL_URL}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: JSON.stringify(order), messages: [] }),
  });
  const body: { choices: { message: { content: string } }[] } = await response.json();
  return body.choices[0]?.message.content ?? "[]";
}

/** The id of the first attempt at a place of a run. */
export function rolloutAt(runId: string, group = 0, slot = 0): string {
  return rolloutId(runId, { group, slot, attempt: 0 }, idMac(env.ROLLCALL_SECRET));
}

/** planned = pending + dispatched, dispatched = in_flight + scored + unscored + failed + cancelled. */
export function expectLaw(counts: RunCounts): void {
  const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = counts;
  const ended = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
  expect(pending + dispatched).toBe(planned);
  expect(ended.reduce((sum, count) => sum + count, in_flight + scored)).toBe(dispatched);
}

function parseEvents(text: string): StreamedEvent[] {
  return text.split("\n\n").flatMap((frame) => {
    const fields = Object.fromEntries(
      frame.split("\n").map((line) => [line.split(": ", 1)[0], line.replace(/^\w+: /, "")]),
    );
    const { id, event, data } = fields;
    return id === undefined || event === undefined || data === undefined
      ? []
      : [{ id: Number(id), event: event as EventName, data: JSON.parse(data) }];
  });
}

async function readPages(ask: TestApi["ask"], first: string): Promise<ResultRow[][]> {
  const pages: ResultRow[][] = [];
  for (let next: string | undefined = first; next !== undefined; ) {
    const response = await ask(next);
    if (response.status !== 200) throw new Error(await response.text());
    // Not text(): the runtime warns about a content type that it does not recognise as text.
    const text = new TextDecoder().decode(await response.arrayBuffer());
    const lines = text.split("\n").filter((line) => line !== "");
    pages.push(lines.map((line) => ResultRow.parse(JSON.parse(line))));
    next = response.headers.get("link")?.match(/^<(.+)>; rel="next"$/)?.[1];
  }
  return pages;
}
