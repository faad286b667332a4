/** The owner of data: the first argument of every query, and the beginning of every object name and stored key. */
export interface Scope {
  readonly orgId: string;
  readonly projectId: string;
}

/** The scope of data that belongs to the organisation itself and not to a project. */
export function ofOrganization(orgId: string): Scope {
  return { orgId, projectId: "" };
}
