/**
 * Finds what is missing or wrong in a wrangler.toml before it is deployed. A pure function of the parsed file: facts
 * that only Cloudflare has (secrets, existing queues) are not checked.
 */
import { relative } from "node:path";
import { LIMITS } from "../contract/limits.ts";
import type { Deployment, NeededBinding, QueueConsumer } from "./deployment.ts";

/** Error: the deployment fails or does not work. Warning: it works, but something should be checked. */
export interface Finding {
  readonly level: "error" | "warning";
  readonly what: string;
  /** How to fix it: a line for the file, or a command. */
  readonly fix: string;
}

export interface Check {
  readonly deployed: Deployment;
  /** The wrangler.toml of this Rollcall release. */
  readonly released: Deployment;
  readonly needed: readonly NeededBinding[];
}

/** The end of the name of a dead-letter queue, by which the Worker recognises dead letters. */
const DEAD = "-dead";
const NO_DATABASE = /^[0-]*$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Values that are set with `wrangler secret put` and must not be in a file. */
const SECRETS = ["ROLLCALL_SECRET", "ROLLCALL_SECRETS_BEFORE", "ROLLCALL_BOOTSTRAP_TOKEN", "OTLP_HEADERS"];

/** The share of the 128 MB of an isolate that large work may hold; the rest is for code and small work. */
const [BUDGET_MIB, MOST_BUDGET_MIB] = [LIMITS.memoryBudgetMib, 64];

/** What goes wrong without a flag, where wrangler or the first request does not show it. */
const WITHOUT_FLAG: Readonly<Record<string, string>> = {
  disallow_importable_env: "environment code can import the bindings and the secrets",
  global_fetch_strictly_public: "calls to addresses of the deployment's own zone bypass Access and the firewall",
};

/** Errors first. */
export function checkDeployment(check: Check): Finding[] {
  const found = [
    ...checkWorker(check),
    ...checkBindings(check),
    ...checkClasses(check),
    ...checkDatabases(check),
    ...checkQueues(check.deployed),
    ...checkBatches(check),
    ...checkVariables(check.deployed),
    ...checkAccess(check.deployed),
    ...checkSecrets(check),
  ];
  return [...found.filter(({ level }) => level === "error"), ...found.filter(({ level }) => level === "warning")];
}

function error(what: string, fix: string): Finding {
  return { level: "error", what, fix };
}

function warning(what: string, fix: string): Finding {
  return { level: "warning", what, fix };
}

function checkWorker({ deployed, released }: Check): Finding[] {
  const found: Finding[] = [];
  if (deployed.name === undefined) found.push(error("the Worker has no name", `name = "${released.name}"`));
  if (deployed.main === undefined || relative(released.main ?? "", deployed.main) !== "") {
    found.push(error("main is not the Worker of this Rollcall release", `main = the path to ${released.main}`));
  }
  const [date, needed] = [deployed.compatibility_date ?? "", released.compatibility_date ?? ""];
  if (date < needed) {
    const what = `compatibility_date is ${date || "missing"}, but the Worker needs ${needed}`;
    found.push(error(what, `compatibility_date = "${needed}"`));
  }
  for (const flag of released.compatibility_flags.filter((flag) => !deployed.compatibility_flags.includes(flag))) {
    const flags = [...new Set([...deployed.compatibility_flags, ...released.compatibility_flags])];
    const why = WITHOUT_FLAG[flag] === undefined ? "" : `: ${WITHOUT_FLAG[flag]}`;
    found.push(
      error(`the compatibility flag ${flag} is missing${why}`, `compatibility_flags = ${JSON.stringify(flags)}`),
    );
  }
  for (const cron of (released.triggers.crons ?? []).filter((cron) => !deployed.triggers.crons?.includes(cron))) {
    found.push(error(`the cron trigger ${cron} is missing`, `[triggers] crons = ["${cron}"]`));
  }
  return [...found, ...checkSurroundings({ deployed, released })];
}

function checkSurroundings({ deployed, released }: Pick<Check, "deployed" | "released">): Finding[] {
  const found: Finding[] = [];
  const cpu = released.limits?.cpu_ms ?? 0;
  if ((deployed.limits?.cpu_ms ?? 0) < cpu) {
    const what = `limits.cpu_ms is below ${cpu}: checking an upload of 1 GiB takes more than the default of 30 s`;
    found.push(warning(what, `[limits] cpu_ms = ${cpu}`));
  }
  if (deployed.observability?.enabled !== true) {
    found.push(warning("no logs are kept, so errors are not recorded", "[observability] enabled = true"));
  } else if (deployed.observability.logs?.invocation_logs !== false) {
    const what = "invocation logs are on: about ten log events a rollout, which are paid for beyond 20 million a month";
    found.push(warning(what, "[observability.logs] invocation_logs = false"));
  }
  const routed = deployed.route !== undefined || (deployed.routes?.length ?? 0) > 0;
  if (deployed.workers_dev === false && !routed) {
    const fix = 'routes = [{ pattern = "rollcall.example.com", custom_domain = true }], or workers_dev = true';
    found.push(warning("it is unreachable: workers_dev is false and there is no route", fix));
  }
  return found;
}

function checkBindings({ deployed, needed }: Check): Finding[] {
  return needed.flatMap(({ name, type, className }) => {
    if (SECRETS.includes(name)) return [];
    const bound = deployed.bindings[name];
    const fix = `copy the lines of ${name} from the wrangler.toml of this release`;
    if (bound === undefined) return [error(`${name} is not bound, but the Worker needs it`, fix)];
    if (type !== null && bound.type !== type) {
      return [error(`${name} is bound to something else: ${bound.type}, not ${type}`, fix)];
    }
    if (className !== null && bound.class_name !== className) {
      return [error(`${name} is bound to the class ${bound.class_name}, not ${className}`, fix)];
    }
    return [];
  });
}

function checkClasses({ deployed, needed }: Check): Finding[] {
  return needed.flatMap(({ name, className }) => {
    if (className === null || deployed.bindings[name] === undefined) return [];
    const sqlite = deployed.classes.get(className);
    if (sqlite === true) return [];
    const how = sqlite === undefined ? "without a migration" : "without SQLite, which stores its data";
    const fix = `[[migrations]] with a new tag and new_sqlite_classes = ["${className}"]`;
    return [error(`the Durable Object class ${className} is created ${how}`, fix)];
  });
}

function checkDatabases({ deployed, released }: Check): Finding[] {
  const ids = deployed.d1_databases.flatMap(({ binding, database_id: id = "", database_name: name = "rollcall" }) => {
    const fix = `database_id = "…", as printed by wrangler d1 create ${name}`;
    if (NO_DATABASE.test(id)) return [error(`${binding} has no database: database_id is a placeholder`, fix)];
    return UUID.test(id) ? [] : [error(`${binding} has no database: database_id is not a UUID`, fix)];
  });
  const numbers = deployed.d1_databases
    .flatMap(({ binding }) => /^DB_([1-9]\d*)$/.exec(binding)?.[1] ?? [])
    .map(Number);
  const gap = numbers.findIndex((_, at) => !numbers.includes(at + 1));
  if (gap !== -1) {
    const what = `DB_${Math.max(...numbers)} is bound, and DB_${gap + 1} is not: the Worker uses none after the gap`;
    ids.push(error(what, `a [[d1_databases]] with binding = "DB_${gap + 1}"`));
  }
  const missing = released.migrations.names.filter((name) => !deployed.migrations.names.includes(name));
  if (missing.length === 0) return ids;
  const what = `${deployed.migrations.folder} lacks migrations of this release: ${missing.join(", ")}`;
  return [...ids, error(what, `migrations_dir = the path to ${released.migrations.folder}`)];
}

function checkQueues({ queues: { producers = [], consumers = [] } }: Deployment): Finding[] {
  const consumed = new Set(consumers.map(({ queue }) => queue));
  const dead = new Set(consumers.flatMap(({ dead_letter_queue: queue }) => queue ?? []));
  const produced = new Set(producers.map(({ queue }) => queue));
  const unread = [...new Set([...produced, ...dead])].filter((queue) => !consumed.has(queue));
  return [
    ...unread.map((queue) => {
      const what = `the queue has no consumer: ${queue}${dead.has(queue) ? ", which gets dead letters" : ""}`;
      return error(what, `[[queues.consumers]] queue = "${queue}"`);
    }),
    ...consumers.flatMap((consumer) => checkConsumer(consumer, dead.has(consumer.queue))),
  ];
}

/** The Worker recognises a dead letter by the name of its queue. */
function checkConsumer({ queue, dead_letter_queue: letters }: QueueConsumer, isDead: boolean): Finding[] {
  if (isDead) {
    if (queue.endsWith(DEAD)) return [];
    const what = `the queue ${queue} gets dead letters, but the Worker would process them: its name must end in ${DEAD}`;
    return [error(what, `dead_letter_queue = "…${DEAD}", here and at its consumer`)];
  }
  if (queue.endsWith(DEAD)) {
    const what = `the queue ${queue} gets no dead letters, but the Worker would only record its messages`;
    return [error(what, `use a name that does not end in ${DEAD}, or remove the consumer`)];
  }
  if (letters !== undefined) return [];
  const what = `the queue ${queue} has no dead-letter queue: failed messages are dropped without a record`;
  return [error(what, `dead_letter_queue = "${queue}${DEAD}"`)];
}

/** One invocation processes a batch, and its limit of subrequests was chosen for this batch size. */
function checkBatches({ deployed, released }: Check): Finding[] {
  const sizes = (of: Deployment) => {
    const consumers = new Map(of.queues.consumers?.map((consumer) => [consumer.queue, consumer]));
    const bound = of.queues.producers?.map(({ binding, queue }) => [binding, consumers.get(queue)] as const);
    return new Map(bound);
  };
  const meant = sizes(released);
  return [...sizes(deployed)].flatMap(([binding, consumer]) => {
    const most = meant.get(binding)?.max_batch_size;
    if (consumer === undefined || most === undefined || (consumer.max_batch_size ?? 0) <= most) return [];
    const what = `the consumer of ${consumer.queue} takes ${consumer.max_batch_size} messages at once, but supports ${most}`;
    return [warning(what, `max_batch_size = ${most}`)];
  });
}

function checkVariables({ vars }: Deployment): Finding[] {
  const found: Finding[] = [];
  if (String(vars["ALLOW_PRIVATE_ENDPOINTS"]) === "true") {
    const what = "ALLOW_PRIVATE_ENDPOINTS is true: anybody with a key can make it call private addresses";
    found.push(error(what, 'ALLOW_PRIVATE_ENDPOINTS = "false"'));
  }
  if (String(vars["AT_REST"]) === "true") {
    found.push(error("AT_REST is true: no rollout would be played", 'AT_REST = "false"'));
  }
  if (Number(vars["LOCAL_PORT"] ?? 0) !== 0) {
    found.push(error("LOCAL_PORT is set: browsers could only sign in on loopback", "LOCAL_PORT = 0"));
  }
  const silence = vars["SILENCE_LIMIT_S"];
  if (silence !== undefined && !(Number(silence) > 0)) {
    found.push(error(`SILENCE_LIMIT_S is not a number of seconds: ${silence}`, "SILENCE_LIMIT_S = 100"));
  }
  found.push(...checkMemory(vars));
  if (Number(vars["LIVE_OBJECT_CEILING"] ?? 0) !== 0) {
    const what = "LIVE_OBJECT_CEILING limits concurrent rollouts: it is only for machines with few open files";
    found.push(warning(what, "LIVE_OBJECT_CEILING = 0"));
  }
  return found;
}

/** With values that are not valid, the Worker uses those of this release. Missing ones are found among the bindings. */
function checkMemory({ MEMORY_BUDGET_MIB: budget = BUDGET_MIB, ROLLOUT_CHARACTERS: characters }: Deployment["vars"]) {
  const found: Finding[] = [];
  const fix = `MEMORY_BUDGET_MIB = ${BUDGET_MIB}`;
  if (!(Number(budget) >= BUDGET_MIB)) {
    found.push(error(`MEMORY_BUDGET_MIB is not a number of MiB of at least ${BUDGET_MIB}: ${budget}`, fix));
  } else if (Number(budget) > MOST_BUDGET_MIB) {
    const what = `MEMORY_BUDGET_MIB is ${budget}, but Cloudflare discards an isolate with more than 128 MB`;
    found.push(warning(what, fix));
  }
  if (characters !== undefined && !(Number(characters) >= 1)) {
    const what = `ROLLOUT_CHARACTERS is not a number of characters: ${characters}`;
    found.push(error(what, "ROLLOUT_CHARACTERS = 4194304"));
  }
  return found;
}

/** Cloudflare Access in front of the Worker: the team's address and the application's audience must both be set. */
function checkAccess({ vars }: Deployment): Finding[] {
  const [team, audience] = ["ACCESS_TEAM_URL", "ACCESS_AUDIENCE"].map((name) => String(vars[name] ?? ""));
  if (team === "" && audience === "") return [];
  const found: Finding[] = [];
  if (audience === "") {
    const what = "ACCESS_TEAM_URL without ACCESS_AUDIENCE: Access signs nobody in";
    found.push(error(what, 'ACCESS_AUDIENCE = "…", the AUD tag of the application'));
  }
  if (!/^https:\/\/[^/]+\/?$/.test(team ?? "")) {
    const what = "ACCESS_TEAM_URL is not the https address of a team: Access signs nobody in";
    found.push(error(what, 'ACCESS_TEAM_URL = "https://TEAM.cloudflareaccess.com"'));
  }
  return found;
}

/** `wrangler deploy` refuses a Worker without its required secrets. Only Cloudflare knows whether they are set. */
function checkSecrets({ deployed: { vars, secrets }, needed }: Check): Finding[] {
  const plain = SECRETS.filter((name) => name in vars);
  const required = needed.map(({ name }) => name).filter((name) => SECRETS.includes(name));
  const unnamed = required.filter((name) => !secrets?.required?.includes(name));
  return [
    ...plain.map((name) => {
      return error(`${name} is a secret but is in the file`, `wrangler secret put ${name}, with a new value`);
    }),
    ...unnamed.map((name) => {
      const what = `a deployment without ${name} would be accepted but would not work`;
      return error(what, `[secrets] required = ["${name}"]`);
    }),
  ];
}
