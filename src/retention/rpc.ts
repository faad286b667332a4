/** The interface of a project's object. As in `src/kernel/messages`, every message may arrive twice. */
import type { DeletionKind } from "../contract/deletion.ts";
import type { Scope } from "../contract/scope.ts";
import { ownerName } from "../kernel/kit/names.ts";
import type { Owner } from "../kernel/messages/rpc.ts";

/** A deletion, for the object of its project or organisation. */
export interface DeletionOrder {
  readonly id: string;
  readonly kind: DeletionKind;
  readonly target_id: string;
}

/** The object of one project, or of a whole organisation: deletions and the daily reconciliation. */
export interface ProjectRpc {
  /** Starts a deletion that is in the database. A repeat changes nothing. */
  deleteAll(of: Owner, order: DeletionOrder): Promise<void>;
  /** The project has new data that may expire, or its retention has changed. */
  note(of: Scope): Promise<void>;
}

/** The object for a project, or (`projectId` null) for a whole organisation. */
export function projectObject(env: Env, owner: Owner): ProjectRpc {
  const stub: unknown = env.PROJECT.getByName(ownerName(owner));
  return stub as ProjectRpc;
}
