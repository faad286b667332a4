/**
 * Published environments as the kernel uses them. A version never changes, so what was read of it is kept; a version that
 * an operator takes down stays usable in an isolate for up to a minute.
 */
import { EnvError } from "../contract/errors.ts";
import { nameKeyOf } from "../contract/published-environment.ts";
import type { LoadableEnvironment, VersionedEnvironment } from "../core/protocol/environment-code.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import type { EnvironmentHooks } from "../kernel/kit/environment-hooks.ts";
import { refuse } from "../kernel/messages/refusal.ts";
import { filesOf } from "./files.ts";
import { type FoundVersion, findNamed, findVersion } from "./find-version.ts";
import { isolatedEnvironment } from "./isolated-code.ts";
import {
  findPublished,
  getGrant,
  getPinned,
  pageOfVersions,
  publishedViewOf,
  searchPublished,
  tagsOf,
} from "./queries.ts";
import type { HubEnvironmentRow, HubVersionRow } from "./tables.ts";
import { LATEST, readNamed } from "./version-names.ts";

const KEPT = 256;
const KEPT_MS = 60_000;
const pinned = new LruCache<{ readonly code: VersionedEnvironment; readonly until: number }>(KEPT);

export const environments: EnvironmentHooks = {
  async find(env, scope, named) {
    const read = await findNamed(env, scope, named);
    if (read === null) return null;
    const { environment, wanted } = read;
    const found = await findVersion(env, read);
    if (found === null) {
      const message = `${environment.name} has no version ${wanted}: \`rollcall env show ${environment.name}\` lists them`;
      return refuse("not_found", message, null);
    }
    const { row, tags } = found;
    if (row.taken_down_at !== null) {
      const message = `${environment.name}@${row.version} was taken down by the operator: ${row.take_down_reason}`;
      return refuse("not_found", message, null);
    }
    return { ok: true, value: versioned(env, environment, row, { tags, orgId: scope.orgId }) };
  },

  async pinned(env, { id, version, digest }, orgId) {
    const name = `${orgId} ${id} ${version} ${digest}`;
    const known = pinned.get(name);
    if (known !== undefined && known.until > Date.now()) return known.code;
    const found = await getPinned(databaseOf(env), nameKeyOf(id), version);
    if (found === null || found.row.taken_down_at !== null) return null;
    // A rollout cannot wait for code that is gone.
    if ((await env.STORE.head(filesOf(found.environment, found.row.id).code)) === null) return null;
    const code = versioned(env, found.environment, found.row, { tags: new Map(), orgId });
    pinned.set(name, { code, until: Date.now() + KEPT_MS });
    return code;
  },

  async refuseUngranted(env, scope, { id, needs, param }) {
    const asked = readNamed(id) === null ? [] : needs.filter((need) => need !== "sql");
    const environment = asked.length === 0 ? null : await findPublished(databaseOf(env), scope, nameKeyOf(id));
    // An organisation's own code may use what the organisation has.
    if (environment === null || environment.org_id === scope.orgId) return null;
    const granted = (await getGrant(databaseOf(env), scope, environment.id))?.needs ?? [];
    const missing = asked.filter((need) => !granted.includes(need));
    if (missing.length === 0) return null;
    const message = `${id} is of another organisation, and this project has not granted it ${missing.join(", ")}: PUT /v1/environments/{id}/grant, or \`rollcall env grant ${id} ${missing.join(" ")}\``;
    return refuse("unmet_need", message, param);
  },

  async search(env, scope, { text, owner, after, limit }) {
    const from = { text, owner: owner && nameKeyOf(owner), after: after && nameKeyOf(after), limit };
    const rows = await searchPublished(databaseOf(env), scope, from);
    const found: VersionedEnvironment[] = [];
    for (const environment of rows) {
      const latest = (await findVersion(env, { environment, wanted: LATEST })) ?? (await newestOf(env, environment));
      if (latest !== null)
        found.push(versioned(env, environment, latest.row, { tags: latest.tags, orgId: scope.orgId }));
    }
    return found;
  },
};

/** For an environment whose versions are all yanked or taken down. */
async function newestOf(env: Env, { id }: HubEnvironmentRow): Promise<FoundVersion | null> {
  const [row] = await pageOfVersions(databaseOf(env), id, null, 1);
  return row === undefined ? null : { row, tags: await tagsOf(databaseOf(env), id) };
}

interface For {
  readonly tags: ReadonlyMap<string, string>;
  /** Of the project that plays it. */
  readonly orgId: string;
}

function versioned(
  env: Env,
  environment: HubEnvironmentRow,
  row: HubVersionRow,
  { tags, orgId }: For,
): VersionedEnvironment {
  const { version, digest, about } = row;
  const { args, dataset, row: shape, needs, judges, max_reward } = about;
  const { code: key } = filesOf(environment, row.id);
  return {
    ...{ id: environment.name, version, digest },
    code: loadedLate(env, orgId, { digest, key, ...(about as Pick<LoadableEnvironment, "args" | "needs">) }),
    published: {
      version: publishedViewOf(environment, row, tags),
      description: { args, dataset, row: shape, needs, judges, ...(max_reward !== undefined && { max_reward }) },
    },
  };
}

interface Stored extends Pick<LoadableEnvironment, "args" | "needs"> {
  readonly digest: string;
  readonly key: string;
}

/** Its isolate is made when its code is called. */
function loadedLate(env: Env, orgId: string, { digest, key, args, needs }: Stored): LoadableEnvironment {
  // A promise is not kept: the invocation that made it may end before it settles.
  let kept: LoadableEnvironment | null = null;
  const text = async (): Promise<string> => {
    const object = await env.STORE.get(key);
    if (object === null) throw new EnvError(`the code ${digest} is not stored any more`);
    return await object.text();
  };
  const load = async (): Promise<LoadableEnvironment> => {
    kept ??= await isolatedEnvironment(env, orgId, { digest, text });
    return kept;
  };
  return {
    args,
    needs,
    checkArguments: async (given, work) => (await load()).checkArguments(given, work),
    load: async (given) => (await load()).load(given),
  };
}
