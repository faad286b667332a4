/** The findings for a wrangler.toml with one change. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkDeployment } from "../../src/local/check-deployment.ts";
import { type Deployment, neededBindings, readDeployment, UnreadableConfig } from "../../src/local/deployment.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { configFor, DATABASE_ID } from "./deployable.ts";

const RELEASED = join(PACKAGE_ROOT, "wrangler.toml");
const folder = mkdtempSync(join(tmpdir(), "rollcall-deployment-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(...changes: readonly (readonly [from: string, to: string])[]): string {
  const file = join(folder, `${crypto.randomUUID()}.toml`);
  writeFileSync(file, configFor(PACKAGE_ROOT, changes));
  return file;
}

async function findings(file: string) {
  const [deployed, released] = [await readDeployment(file), await readDeployment(RELEASED)];
  return checkDeployment({ deployed, released, needed: neededBindings(PACKAGE_ROOT) });
}

test("the release's own file lacks only the database of an account", async () => {
  expect(await findings(RELEASED)).toEqual([
    {
      level: "error",
      what: "DB has no database: database_id is a placeholder",
      fix: expect.stringContaining("wrangler d1 create rollcall"),
    },
  ]);
  expect(await findings(fileWith())).toEqual([]);
});

test("the Worker needs every binding of the release's file, and wrangler has a type for each", async () => {
  const { bindings, secrets } = await readDeployment(RELEASED);
  const needed = neededBindings(PACKAGE_ROOT);
  expect(needed.map(({ name }) => name).sort()).toEqual(
    [...Object.keys(bindings), ...(secrets?.required ?? [])].sort(),
  );
  const told = needed.flatMap(({ name, type }) => (type === null ? [] : [[name, type]]));
  const variables = ["plain_text", "json"];
  const kinds = Object.entries(bindings).map(([name, { type }]) => [name, type]);
  expect(Object.fromEntries(told)).toEqual(
    Object.fromEntries(kinds.filter(([, type]) => !variables.includes(type ?? ""))),
  );
});

const RATE_LIMIT = `[[ratelimits]]
name = "WRONG_KEYS"
namespace_id = "1001"
simple = { limit = 100, period = 60 }
`;
const OBJECT = `[[durable_objects.bindings]]
name = "TRAINER"
class_name = "TrainerObject"
`;
const MIGRATIONS = readdirSync(join(PACKAGE_ROOT, "migrations"))
  .filter((name) => name.endsWith(".sql"))
  .sort()
  .join(", ");
const SECRETS = `[secrets]
required = ["ROLLCALL_SECRET"]
`;
const PRODUCER = `[[queues.producers]]
queue = "run-segments"
binding = "RUN_SEGMENTS"
`;
const DEAD_CONSUMER = `[[queues.consumers]]
queue = "run-segments-dead"
max_batch_size = 100
max_batch_timeout = 1
`;
const DEAD_LETTERS = 'dead_letter_queue = "run-segments-dead"\n';

const ERRORS: readonly (readonly [what: string, from: string, to: string, fix: string])[] = [
  ["DB has no database: database_id is not a UUID", DATABASE_ID, "rollcall", "wrangler d1 create"],
  ["DB has no database: database_id is a placeholder", `database_id = "${DATABASE_ID}"\n`, "", "wrangler d1 create"],
  [
    `${join(folder, "none")} lacks migrations of this release: ${MIGRATIONS}`,
    `migrations_dir = "${join(PACKAGE_ROOT, "migrations")}"`,
    'migrations_dir = "none"',
    join(PACKAGE_ROOT, "migrations"),
  ],
  [
    "DB_2 is bound, and DB_1 is not: the Worker uses none after the gap",
    "[[r2_buckets]]\n",
    `[[d1_databases]]\nbinding = "DB_2"\ndatabase_id = "${DATABASE_ID}"\n\n[[r2_buckets]]\n`,
    'binding = "DB_1"',
  ],
  ["WRONG_KEYS is not bound, but the Worker needs it", RATE_LIMIT, "", "the lines of WRONG_KEYS"],
  ["TRAINER is not bound, but the Worker needs it", OBJECT, "", "the lines of TRAINER"],
  ["AT_REST is not bound, but the Worker needs it", 'AT_REST = "false"', "", "the lines of AT_REST"],
  [
    "TRAINER is bound to something else: r2_bucket, not durable_object_namespace",
    OBJECT,
    '[[r2_buckets]]\nbinding = "TRAINER"\nbucket_name = "trainer"\n',
    "the lines of TRAINER",
  ],
  [
    "TRAINER is bound to the class EndpointObject, not TrainerObject",
    OBJECT,
    OBJECT.replace("TrainerObject", "EndpointObject"),
    "the lines of TRAINER",
  ],
  [
    "the Durable Object class TrainerObject is created without a migration",
    '[[migrations]]\ntag = "v3"\nnew_sqlite_classes = ["TrainerObject"]\n',
    "",
    'new_sqlite_classes = ["TrainerObject"]',
  ],
  [
    "the Durable Object class TrainerObject is created without SQLite, which stores its data",
    'new_sqlite_classes = ["TrainerObject"]',
    'new_classes = ["TrainerObject"]',
    'new_sqlite_classes = ["TrainerObject"]',
  ],
  ["the queue has no consumer: run-segments-dead, which gets dead letters", DEAD_CONSUMER, "", "run-segments-dead"],
  ["the queue has no consumer: elsewhere", PRODUCER, PRODUCER.replace("run-segments", "elsewhere"), "elsewhere"],
  [
    "the queue run-segments has no dead-letter queue: failed messages are dropped without a record",
    DEAD_LETTERS,
    "",
    'dead_letter_queue = "run-segments-dead"',
  ],
  [
    "ALLOW_PRIVATE_ENDPOINTS is true: anybody with a key can make it call private addresses",
    'ALLOW_PRIVATE_ENDPOINTS = "false"',
    'ALLOW_PRIVATE_ENDPOINTS = "true"',
    "false",
  ],
  ["SILENCE_LIMIT_S is not a number of seconds: off", "SILENCE_LIMIT_S = 100", 'SILENCE_LIMIT_S = "off"', "= 100"],
  [
    "MEMORY_BUDGET_MIB is not a number of MiB of at least 48: off",
    "MEMORY_BUDGET_MIB = 48",
    'MEMORY_BUDGET_MIB = "off"',
    "MEMORY_BUDGET_MIB = 48",
  ],
  [
    "MEMORY_BUDGET_MIB is not a number of MiB of at least 48: 8",
    "MEMORY_BUDGET_MIB = 48",
    "MEMORY_BUDGET_MIB = 8",
    "MEMORY_BUDGET_MIB = 48",
  ],
  [
    "ROLLOUT_CHARACTERS is not a number of characters: many",
    "ROLLOUT_CHARACTERS = 4194304",
    'ROLLOUT_CHARACTERS = "many"',
    "ROLLOUT_CHARACTERS = 4194304",
  ],
  [
    "MEMORY_BUDGET_MIB is not bound, but the Worker needs it",
    "MEMORY_BUDGET_MIB = 48\n",
    "",
    "copy the lines of MEMORY_BUDGET_MIB",
  ],
  [
    "ROLLOUT_CHARACTERS is not bound, but the Worker needs it",
    "ROLLOUT_CHARACTERS = 4194304\n",
    "",
    "copy the lines of ROLLOUT_CHARACTERS",
  ],
  ["AT_REST is true: no rollout would be played", 'AT_REST = "false"', "AT_REST = true", "false"],
  [
    "compatibility_date is 2026-01-01, but the Worker needs 2026-09-01",
    'compatibility_date = "2026-09-01"',
    'compatibility_date = "2026-01-01"',
    "2026-09-01",
  ],
  [
    "the compatibility flag nodejs_compat is missing",
    '"nodejs_compat", ',
    '"url_standard", ',
    '["url_standard","disallow_importable_env","global_fetch_strictly_public","nodejs_compat"]',
  ],
  [
    "the compatibility flag disallow_importable_env is missing: environment code can import the bindings and the secrets",
    ', "disallow_importable_env"',
    "",
    '["nodejs_compat","global_fetch_strictly_public","disallow_importable_env"]',
  ],
  [
    "the compatibility flag global_fetch_strictly_public is missing: calls to addresses of the deployment's own zone bypass Access and the firewall",
    ', "global_fetch_strictly_public"',
    "",
    '["nodejs_compat","disallow_importable_env","global_fetch_strictly_public"]',
  ],
  ["the Worker has no name", 'name = "rollcall"\n', "", 'name = "rollcall"'],
  [
    "main is not the Worker of this Rollcall release",
    `main = "${join(PACKAGE_ROOT, "src/index.ts")}"`,
    'main = "worker.ts"',
    "src/index.ts",
  ],
  [
    "a deployment without ROLLCALL_SECRET would be accepted but would not work",
    SECRETS,
    "",
    'required = ["ROLLCALL_SECRET"]',
  ],
  [
    "ROLLCALL_SECRETS_BEFORE is a secret but is in the file",
    "[vars]",
    '[vars]\nROLLCALL_SECRETS_BEFORE = "hush"',
    "wrangler secret put ROLLCALL_SECRETS_BEFORE",
  ],
  [
    "ROLLCALL_BOOTSTRAP_TOKEN is a secret but is in the file",
    "[vars]",
    '[vars]\nROLLCALL_BOOTSTRAP_TOKEN = "hush"',
    "wrangler secret put ROLLCALL_BOOTSTRAP_TOKEN",
  ],
];

test.each(ERRORS)("an error: %s", async (what, from, to, fix) => {
  const found = await findings(fileWith([from, to]));
  expect(found[0]).toEqual({ level: "error", what, fix: expect.stringContaining(fix) });
});

test("a misleading queue name is an error, since dead-letter queues are recognised by their names", async () => {
  const misnamed = (
    await findings(
      fileWith(
        [DEAD_LETTERS, 'dead_letter_queue = "lost"\n'],
        ['queue = "run-segments-dead"\nbinding', 'queue = "lost"\nbinding'],
        [DEAD_CONSUMER, DEAD_CONSUMER.replace("run-segments-dead", "lost")],
      ),
    )
  ).map(({ what }) => what);
  expect(misnamed).toEqual([
    "the queue lost gets dead letters, but the Worker would process them: its name must end in -dead",
  ]);
  const spare = '[[queues.consumers]]\nqueue = "spare-dead"\n\n[[queues.consumers]]\nqueue = "run-segments"\n';
  const found = await findings(fileWith(['[[queues.consumers]]\nqueue = "run-segments"\n', spare]));
  expect(found.map(({ what }) => what)).toEqual([
    "the queue spare-dead gets no dead letters, but the Worker would only record its messages",
  ]);
});

const WARNINGS: readonly (readonly [what: string, from: string, to: string])[] = [
  [
    "limits.cpu_ms is below 300000: checking an upload of 1 GiB takes more than the default of 30 s",
    "cpu_ms = 300_000",
    "cpu_ms = 30_000",
  ],
  [
    "no logs are kept, so errors are not recorded",
    "[observability]\nenabled = true",
    "[observability]\nenabled = false",
  ],
  [
    "invocation logs are on: about ten log events a rollout, which are paid for beyond 20 million a month",
    "[observability.logs]\ninvocation_logs = false\n",
    "",
  ],
  [
    "invocation logs are on: about ten log events a rollout, which are paid for beyond 20 million a month",
    "invocation_logs = false",
    "invocation_logs = true",
  ],
  [
    "it is unreachable: workers_dev is false and there is no route",
    "minify = true",
    "minify = true\nworkers_dev = false",
  ],
  [
    "the consumer of run-segments takes 3 messages at once, but supports 2",
    "max_batch_size = 2\n",
    "max_batch_size = 3\n",
  ],
  [
    "LIVE_OBJECT_CEILING limits concurrent rollouts: it is only for machines with few open files",
    "LIVE_OBJECT_CEILING = 0",
    "LIVE_OBJECT_CEILING = 100",
  ],
];

test.each(WARNINGS)("a warning: %s", async (what, from, to) => {
  expect(await findings(fileWith([from, to]))).toEqual([{ level: "warning", what, fix: expect.any(String) }]);
});

test("a custom domain instead of workers.dev, and another queue name, are no findings", async () => {
  const routes = 'minify = true\nworkers_dev = false\nroutes = [{ pattern = "a.example.com", custom_domain = true }]';
  const renamed = (queue: string) => ["run-segments", queue] as const;
  // Producer and consumer, the name of the dead-letter queue, and its producer and consumer.
  const own = fileWith(["minify = true", routes], ...Array.from({ length: 5 }, () => renamed("own")));
  expect(await findings(own)).toEqual([]);
});

test("Cloudflare Access needs both the team and the application, and a team at an https address", async () => {
  const [deployed, released] = [await readDeployment(fileWith()), await readDeployment(RELEASED)];
  const said = (team: string, audience: string) => {
    const vars = { ...deployed.vars, ACCESS_TEAM_URL: team, ACCESS_AUDIENCE: audience };
    const found = checkDeployment({ deployed: { ...deployed, vars }, released, needed: neededBindings(PACKAGE_ROOT) });
    return found.map(({ level, what }) => `${level}: ${what}`);
  };
  const noTeam = "error: ACCESS_TEAM_URL is not the https address of a team: Access signs nobody in";
  expect(said("", "")).toEqual([]);
  expect(said("https://a.cloudflareaccess.com/", "tag")).toEqual([]);
  expect(said("a.cloudflareaccess.com", "tag")).toEqual([noTeam]);
  expect(said("", "tag")).toEqual([noTeam]);
  expect(said("https://a.cloudflareaccess.com", "")).toEqual([
    "error: ACCESS_TEAM_URL without ACCESS_AUDIENCE: Access signs nobody in",
  ]);
});

test("errors come before warnings", async () => {
  const found = await findings(fileWith(["cpu_ms = 300_000", "cpu_ms = 1"], ['AT_REST = "false"', 'AT_REST = "true"']));
  expect(found.map(({ level }) => level)).toEqual(["error", "warning"]);
});

test("a file that is not TOML, or that wrangler refuses, is reported with wrangler's message", async () => {
  const read = (text: string): Promise<Deployment> => {
    const file = join(folder, `${crypto.randomUUID()}.toml`);
    writeFileSync(file, text);
    return readDeployment(file);
  };
  await expect(read('name = "x"\n[[queues')).rejects.toThrow(UnreadableConfig);
  await expect(read('name = "x"\nratelimits = 3\n')).rejects.toThrow(
    'The field "ratelimits" should be an array but got 3',
  );
});
