/**
 * Plays one plan: the calm run first, then the same run on its own platform with the plan's faults. Until the last
 * incident is over the platform is observed only from the model's side, so that it must recover by itself.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { RunAudit } from "../../src/contract/audit.ts";
import type { EvalRequestInput } from "../../src/contract/eval-request.ts";
import type { Judgement } from "../../src/contract/judgement.ts";
import { Message } from "../../src/contract/messages.ts";
import type { ResultRow, RolloutView, RunView } from "../../src/contract/run.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import { bundleEnvironment } from "../../src/local/environment-bundle.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { ApiRequestError } from "../../src/sdk/request-error.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { pack } from "../hub/packages.ts";
import type { Served } from "../local/served-platform.ts";
import type { Account, Asking, Death, Injected, Outage, Told } from "./account.ts";
import { type Billed, organizationOf, payFor, readBilled, setPrices } from "./billing.ts";
import { Boot } from "./boot.ts";
import { type Desk, openDesk } from "./desk.ts";
import { digestOf, type FaultModel, type Said, startFaultModel } from "./fault-model.ts";
import { CALM, KNOWN_FOR_MS } from "./knobs.ts";
import { CALL_TIMEOUT_MS, LEAST_IN_FLIGHT, MAX_RETRIES } from "./limits.ts";
import { type Control, type FaultPlan, type Kill, type StoreFailure, sharedBy } from "./plan.ts";
import { strike } from "./strike.ts";

const MODEL = "fault-model";
const JUDGE = "fault-judge";
const LOOK_EVERY_MS = 5;
const ASK_EVERY_MS = 250;
/**
 * After this time without a request, the run is nearly finished, and a moment that has not come will not come. Longer
 * than any back-off of the run.
 */
const NOTHING_ASKED_MS = 8000;
const GETS_AT_ONCE = 8;
/** The suffix of an id. */
const ID_CODE = 8;

export interface Stage {
  /** Where the calm run is played. */
  readonly calm: Served;
  readonly port: number;
  /** How long the run may take once the last incident is over. */
  readonly endsWithinMs: number;
}

/**
 * One account for each organisation that shares the platform, the plan's own first. The incidents happen by the
 * progress of that one, and only its owner makes requests meanwhile. The others play the same run with other seeds.
 */
export async function playPlan(plan: FaultPlan, stage: Stage, tenants = 1): Promise<Account[]> {
  const { queues, reconcile, lost_replies: lose_reply, lost_isolates } = plan;
  const knobs = { ...CALM, ...queues, reconcile, lose_reply };
  const owners: Owner[] = [];
  for (const one of sharedBy(plan, tenants)) {
    const [model, judge] = [await startFaultModel(one), await startFaultModel(one)];
    owners.push({ plan: one, model, judge, desk: await openDesk(owners.length === 0 ? knobs : CALM) });
  }
  const [first] = owners;
  if (first === undefined) throw new Error("a plan is played for one organisation at least");
  const boot = new Boot(stage.port, `${first.desk.url}/knobs`, plan);
  try {
    const calms = Promise.all(owners.map((owner) => calmRun(owner.plan, stage.calm)));
    const [calm, served] = await Promise.all([calms, boot.start()]);
    const begun = await begin(owners, served, plan.billing);
    // Not before: a publication is not repeated.
    first.desk.turn({ lose_isolate: lost_isolates });
    const [own] = begun;
    if (own === undefined) throw new Error("no run began");
    const scene = { boot, ...first, others: owners.slice(1), ...own };
    const befell = await befall(plan, scene, calm[0]?.run.report.turns ?? 0);
    const told = await Promise.all(begun.map(({ run, key }) => reportEnded(boot, run, stage.endsWithinMs, key)));
    const billed = await billedOf(plan, standing(boot).served, begun);
    const foreign = await seenOfOthers(standing(boot).served, begun, told);
    return owners.flatMap(({ plan: played, model, judge, desk }, at) => {
      const [own_calm, own_told] = [calm[at], told[at]];
      if (own_calm === undefined || own_told === undefined) return [];
      const asked = { calls: model.calls, most_open: model.mostOpen() };
      const judged = { judge_calls: judge.calls, most_judging: judge.mostOpen() };
      const seen = { ...asked, ...judged, tool_runs: desk.runs, foreign: foreign[at] ?? [] };
      const askings = at === 0 ? befell.askings : [];
      const injected = injectedOf(boot, [model, judge]);
      const known = { plan: played, calm: own_calm, told: own_told, billed: billed[at] ?? null };
      return [{ ...known, ...seen, ...befell, askings, injected }];
    });
  } catch (error) {
    process.stderr.write(`seed ${plan.seed}: what the platform said last\n${boot.lastWords()}\n`);
    throw error;
  } finally {
    await boot.end();
    await Promise.all(owners.flatMap(({ model, judge, desk }) => [model.stop(), judge.stop(), desk.stop()]));
  }
}

/** Starts each owner's run, in its own organisation, and keeps its key. */
async function begin(owners: readonly Owner[], served: Served, billing: boolean): Promise<Begun[]> {
  const begun: Begun[] = [];
  if (billing) await setPrices(served, owners.flatMap(pricedOf));
  for (const owner of owners) {
    const name = `tenant ${begun.length}`;
    // The first new organisation gets the second database: the platform's own is in the first.
    const isOwn = begun.length === 0 && owner.plan.databases === 1;
    const key = isOwn ? served.key : await keyOfNew(name, served);
    if (billing) await payFor(served, await organizationOf({ url: served.url, key }));
    const rollcall = client({ url: served.url, key });
    const environment = await environmentOf(rollcall, owner.plan, `faults-${begun.length}`);
    const { id } = await rollcall.runs.create({ ...requestOf(owner.plan, owner), environment });
    begun.push({ run: id, key });
  }
  return begun;
}

/** The models that have a price. */
function pricedOf({ model, judge }: Outside): [string, string][] {
  return [
    [model.url, MODEL],
    [judge.url, JUDGE],
  ];
}

/** By owner; empty for a plan without billing. */
async function billedOf({ billing }: FaultPlan, { url }: Served, begun: readonly Begun[]): Promise<Billed[]> {
  return billing ? await Promise.all(begun.map(({ run, key }) => readBilled({ url, key }, run))) : [];
}

async function keyOfNew(name: string, served: Served): Promise<string> {
  const { id, key } = await client(served).organizations.create({ name });
  if (key.key === null) throw new Error(`${id} was made before, and its key is said once`);
  return key.key;
}

/** By owner: ids of another owner in its answers, and resources of another owner that it could read. */
async function seenOfOthers(served: Served, begun: readonly Begun[], told: readonly Told[]): Promise<string[][]> {
  const texts = told.map((one) => JSON.stringify({ ...one, turns: [...one.turns.keys()], timed_out: null }));
  const cores = begun.map(({ run }) => run.slice("run_".length, -ID_CODE));
  const looks = begun.map(async ({ key }, at) => {
    const rollcall = client({ url: served.url, key });
    const others = begun.filter((_, index) => index !== at);
    const named = cores.filter((core, index) => index !== at && texts[at]?.includes(core));
    const answered: string[] = [];
    for (const { run } of others) {
      const found = await rollcall.runs.get(run).then(
        () => true,
        (error: unknown) => !(error instanceof ApiRequestError && error.status === 404),
      );
      if (found) answered.push(run);
    }
    return [...named, ...answered];
  });
  return await Promise.all(looks);
}

async function calmRun(plan: FaultPlan, served: Served): Promise<Told> {
  const well = { ...plan, model_faults: 0, latency_ms: 0 };
  const [model, judge] = [await startFaultModel(well), await startFaultModel(well)];
  const desk = await openDesk(CALM);
  try {
    const rollcall = client(served);
    const environment = await environmentOf(rollcall, plan, "faults");
    const { id } = await rollcall.runs.create({ ...requestOf(plan, { model, judge, desk }), environment });
    return await tell(rollcall, await ended(rollcall, id, WAIT_HANGS_MS));
  } finally {
    await Promise.all([model.stop(), judge.stop(), desk.stop()]);
  }
}

/** The name of the plan's environment, which is published first if it plays in an isolate. */
async function environmentOf(rollcall: RollcallClient, plan: FaultPlan, owner: string): Promise<string> {
  const { environment, isolated } = plan;
  if (!isolated) return environment;
  const name = `${owner}/${environment}`;
  const folder = environment === "errands" ? import.meta.dirname : join(import.meta.dirname, "../../environments");
  const { text: code } = await bundleEnvironment(join(folder, environment, "environment.ts"));
  const manifest = environment === "errands" ? { rollcall: { args: { desk: "https://desk.example" } } } : {};
  await rollcall.environments.publish(await pack({ name, version: "1.0.0", code, manifest }));
  return name;
}

function requestOf(plan: FaultPlan, { model, judge, desk }: Outside): Omit<EvalRequestInput, "environment"> {
  const { environment, judged, num_examples, rollouts_per_example, max_concurrent, seed } = plan;
  const judges = { default: { endpoint: { base_url: judge.url }, model: JUDGE } };
  return {
    environment_args: environment === "errands" ? { desk: desk.url, judged } : {},
    // Cached judgements would cause no calls, and calls must be counted.
    ...(judged && { judges, judge_cache: false }),
    model: MODEL,
    endpoint: { base_url: model.url },
    num_examples,
    rollouts_per_example,
    max_concurrent,
    seed,
    limits: {
      call_timeout_s: CALL_TIMEOUT_MS / 1000,
      max_retries: MAX_RETRIES,
    },
    min_scored: 0,
  };
}

/** The servers that a plan never kills. */
interface Outside {
  readonly model: FaultModel;
  readonly judge: FaultModel;
  readonly desk: Desk;
}

/** One of the organisations on the platform, with the servers that it calls. */
interface Owner extends Outside {
  readonly plan: FaultPlan;
}

interface Begun {
  /** The run's id. */
  readonly run: string;
  readonly key: string;
}

interface Scene extends Outside {
  readonly boot: Boot;
  /** The servers that the other organisations call. */
  readonly others: readonly Outside[];
  /** The run's id, and the key of its organisation. */
  readonly run: string;
  readonly key: string;
}

/** Executes the plan's incidents, one after another. `turns`: of the calm run, the measure of progress. */
async function befall(
  plan: FaultPlan,
  scene: Scene,
  turns: number,
): Promise<Pick<Account, "deaths" | "outages" | "askings">> {
  const { model, desk } = scene;
  const deaths: Death[] = [];
  const failures: Promise<Outage>[] = [];
  const askings: Promise<Asking[]>[] = [];
  const lastKill = plan.incidents.findLast(({ kind }) => kind === "kill");
  let cancelled = false;
  for (const incident of plan.incidents) {
    await come(model, () => model.answered() >= incident.at * turns);
    if (incident.kind === "kill") {
      if (incident === lastKill && !plan.late_drops) desk.turn({ drop: 0 });
      deaths.push(await die(incident, { ...scene, cancelled }));
    } else if (incident.kind === "control") {
      askings.push(askFor(incident, scene));
      if (incident.does !== "cancel") continue;
      await askings.at(-1);
      cancelled = true;
    } else {
      failures.push(failFor(incident, desk));
    }
  }
  const outages = await Promise.all(failures);
  const asked = (await Promise.all(askings)).flat();
  // Later requests must not meet the Worker's cached settings.
  await pause(2 * KNOWN_FOR_MS);
  return { deaths, outages, askings: asked };
}

/** A pause ends by itself. */
async function askFor({ does, for_ms }: Control, scene: Scene): Promise<Asking[]> {
  const asked: Asking[] = [await asking(does, scene)];
  if (does !== "pause") return asked;
  await pause(for_ms);
  return [...asked, await asking("resume", scene)];
}

/**
 * Repeated until the platform accepts it: it may be down, or its store unavailable. A request that comes too late is
 * refused.
 */
async function asking(does: Asking["does"], { boot, run, key }: Scene): Promise<Asking> {
  const deadline = Date.now() + WAIT_HANGS_MS;
  const asks = {
    pause: (rollcall: RollcallClient) => rollcall.runs.pause(run),
    resume: (rollcall: RollcallClient) => rollcall.runs.resume(run),
    retry: (rollcall: RollcallClient) => rollcall.runs.retry(run),
    cancel: (rollcall: RollcallClient) => rollcall.runs.cancel(run),
  };
  for (;;) {
    try {
      await asks[does](client({ url: standing(boot).served.url, key }));
      return { does, at: Date.now() };
    } catch (error) {
      const refused = error instanceof ApiRequestError && error.status === 409;
      if (refused) return { does, at: Date.now() };
      if (Date.now() > deadline) throw error;
      await pause(ASK_EVERY_MS);
    }
  }
}

/** A later failure replaces an earlier one that still lasts. */
async function failFor({ store, for_ms }: StoreFailure, desk: Desk): Promise<Outage> {
  const from = Date.now();
  const failing = [store];
  desk.turn({ failing });
  await pause(for_ms);
  if (desk.knobs().failing === failing) desk.turn({ failing: [] });
  return { from, to: Date.now() + KNOWN_FOR_MS };
}

async function die(
  { victim, wait_ms, least }: Kill,
  { cancelled, ...scene }: Scene & { readonly cancelled: boolean },
): Promise<Death> {
  const { boot, model, judge, others } = scene;
  await pause(wait_ms);
  // A cancelled run may make no more calls of the model.
  const open = cancelled ? 0 : (least ?? LEAST_IN_FLIGHT);
  await come(model, () => model.open() >= open);
  const { served, directory } = standing(boot);
  const in_flight = model.open();
  const goes_on = !cancelled;
  const silent = [judge, ...others.flatMap((other) => [other.model, other.judge])];
  const target = { served, directory, serveAgain: boot.start, model, silent, in_flight, goes_on };
  const struck = await strike(victim, target);
  boot.served = struck.served;
  return struck.death;
}

/** Resolves when the condition holds, or when the model gets no more requests. */
async function come(model: FaultModel, condition: () => boolean): Promise<void> {
  const from = Date.now();
  const over = () => Date.now() - Math.max(from, model.times.at(-1) ?? from) > NOTHING_ASKED_MS;
  while (!condition() && !over()) await pause(LOOK_EVERY_MS);
}

function standing({ served, directory }: Boot): { served: Served; directory: string } {
  if (served === null) throw new Error("the platform was never started");
  return { served, directory };
}

function client({ url, key }: Pick<Served, "url" | "key">): RollcallClient {
  // Each organisation's first project.
  return new RollcallClient({ baseUrl: url, apiKey: key, project: "default" });
}

async function reportEnded(boot: Boot, id: string, withinMs: number, key: string): Promise<Told> {
  const rollcall = client({ url: standing(boot).served.url, key });
  return await tell(rollcall, await ended(rollcall, id, withinMs));
}

/** The run at its end, or when its time is up. */
async function ended(rollcall: RollcallClient, id: string, withinMs: number): Promise<RunView> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const run = await rollcall.runs.get(id);
    if (run.finished_at !== null || Date.now() > deadline) return run;
    await pause(ASK_EVERY_MS);
  }
}

async function tell(rollcall: RollcallClient, run: RunView): Promise<Told> {
  const results: ResultRow[] = [];
  for await (const row of rollcall.runs.results(run.id)) results.push(row);
  const ids = results.map(({ rollout_id }) => rollout_id);
  const judgements: Judgement[] = [];
  const turns = new Map<string, Said>();
  const timed_out = new Map<string, number[]>();
  const lane = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const rollout = await rollcall.rollouts.get(id);
      judgements.push(...rollout.judgements);
      // Turns that were taken over were sampled, and paid for, in their original run.
      if (rollout.rescored_from !== null) continue;
      noteTimeouts(timed_out, rollout);
      for (const turn of rollout.turns) turns.set(`${id}:${turn.index}`, storedOf(turn));
    }
  };
  await Promise.all(Array.from({ length: GETS_AT_ONCE }, lane));
  return {
    run,
    results,
    turns,
    timed_out,
    events: run.finished_at === null ? [] : await eventsOf(rollcall, run.id),
    judgements,
    audit: await auditWritten(rollcall, run),
  };
}

function noteTimeouts(noted: Map<string, number[]>, { id, failed_calls }: RolloutView): void {
  for (const { turn, at, reason } of failed_calls) {
    if (reason !== "timeout") continue;
    const key = `${id}:${turn}`;
    noted.set(key, [...(noted.get(key) ?? []), at]);
  }
}

function storedOf({ completion, usage }: RolloutView["turns"][number]): Said {
  const { content, tool_calls = [] } = Message.parse(completion);
  const calls = tool_calls.map(({ id, function: { name, arguments: given } }) => {
    return { id, name, given };
  });
  return { digest: digestOf(content, calls), usage };
}

async function eventsOf(rollcall: RollcallClient, id: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of rollcall.runs.events(id)) events.push(event);
  return events;
}

/** D1 follows an ended run: the audit is repeated until D1 has caught up, or the time is over. */
async function auditWritten(
  rollcall: RollcallClient,
  { id, finished_at }: Pick<RunView, "id" | "finished_at">,
): Promise<RunAudit> {
  const deadline = Date.now() + (finished_at === null ? 0 : WAIT_HANGS_MS);
  for (;;) {
    const audit = await rollcall.runs.audit(id);
    if (audit.sources.d1.current || Date.now() > deadline) return audit;
    await pause(ASK_EVERY_MS);
  }
}

function injectedOf(boot: Boot, models: readonly FaultModel[]): Injected {
  const calls = models.flatMap((model) => [...model.calls.values()]);
  const requests = calls.flatMap((call) => call.requests);
  return {
    dropped: boot.faults("dropped"),
    duplicated: boot.faults("duplicated"),
    delayed: boot.faults("delayed"),
    queues: boot.faultsOfQueues(),
    store_failures: boot.faults("store"),
    replies_lost: boot.faults("reply"),
    isolates_lost: boot.faults("isolate"),
    model_faults: requests.filter((request) => request.ended === "fault").length,
  };
}
