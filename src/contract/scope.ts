/** Whose data: the first argument of every query, and the beginning of every object name and stored key. */
export interface Scope {
  readonly orgId: string;
  readonly projectId: string;
}

/** What belongs to the organisation itself and to none of its projects. */
export function ofOrganization(orgId: string): Scope {
  return { orgId, projectId: "" };
}
