/** What the object of a project is asked. As in `src/kernel/messages`: everything may come twice. */
import type { DeletionKind } from "../contract/deletion.ts";
import type { Scope } from "../contract/scope.ts";
import { ownerName } from "../kernel/kit/names.ts";
import type { Owner } from "../kernel/messages/rpc.ts";

/** What is deleted: the work of the object of its project, or of its organisation. */
export interface DeletionOrder {
  readonly id: string;
  readonly kind: DeletionKind;
  readonly target_id: string;
}

/** The object of one project, or of a whole organisation: it deletes, and sweeps what is older than is to be kept. */
export interface ProjectRpc {
  /** Begins a deletion that stands in the database. Repeated, it changes nothing. */
  deleteAll(of: Owner, order: DeletionOrder): Promise<void>;
  /** Something was made here that may be older than it is to be kept one day; or how long that is was changed. */
  note(of: Scope): Promise<void>;
}

/** What deletes and sweeps in a project, or (`projectId` null) in a whole organisation. */
export function projectObject(env: Env, owner: Owner): ProjectRpc {
  const stub: unknown = env.PROJECT.getByName(ownerName(owner));
  return stub as ProjectRpc;
}
