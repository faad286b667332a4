/** Whose data: the first argument of every query, and the beginning of every object name and stored key. */
export interface Scope {
  readonly orgId: string;
  readonly projectId: string;
}
