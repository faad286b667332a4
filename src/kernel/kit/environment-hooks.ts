/** Environments that are not part of the deployment. The slice that has them registers these hooks (slice-hooks.ts). */
import type { Scope } from "../../contract/scope.ts";
import type { VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import type { Result } from "../messages/refusal.ts";
import type { EnvironmentPin } from "../messages/wire.ts";

export interface EnvironmentSearch {
  /** In the name or the description; null: any. */
  readonly text: string | null;
  readonly owner: string | null;
  /** Id of the last environment of the previous page. */
  readonly after: string | null;
  readonly limit: number;
}

/** An environment that a run uses, what it needs, and the request field that named it. */
export interface WantedNeeds {
  readonly id: string;
  readonly needs: readonly string[];
  readonly param: string;
}

export interface EnvironmentHooks {
  /** The version that a request of the project means; null if the name is not of this kind. */
  find(env: Env, scope: Scope, named: string): Promise<Result<VersionedEnvironment> | null>;
  /** The version that a run has pinned; null if its code was deleted. Called for each rollout. */
  pinned(env: Env, pin: EnvironmentPin, orgId: string): Promise<VersionedEnvironment | null>;
  /** Null if the project lets the environment use all of this, and for an environment of the deployment. */
  refuseUngranted(env: Env, scope: Scope, wanted: WantedNeeds): Promise<Result<never> | null>;
  /** Environments that the project may use, by name. */
  search(env: Env, scope: Scope, search: EnvironmentSearch): Promise<readonly VersionedEnvironment[]>;
}

/** For a platform without such environments. */
export const NO_ENVIRONMENTS: EnvironmentHooks = {
  find: async () => null,
  pinned: async () => null,
  refuseUngranted: async () => null,
  search: async () => [],
};
