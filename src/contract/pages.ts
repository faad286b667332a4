/**
 * The paths of the pages that people look at. The Worker answers each with the same HTML, whose program (src/web) shows
 * what the path names; whoever prints a link makes it here.
 */
export const PAGES = [
  ...["/", "/sign-in", "/runs/new", "/runs/:id", "/runs/:id/rollouts", "/runs/:id/groups/:group", "/rollouts/:id"],
  ...["/compare", "/environments", "/environments/:id", "/datasets", "/datasets/:id", "/endpoints", "/endpoints/:id"],
  ...["/fleets", "/fleets/:id", "/triggers", "/triggers/:id", "/webhooks", "/webhooks/:id", "/keys", "/usage"],
  "/shared",
] as const;

/** The token stays in the browser: what stands behind the `#` is sent to nobody. */
export const sharedPage = (token: string): string => `/shared#${token}`;
export const runPage = (id: string): string => `/runs/${encodeURIComponent(id)}`;

/** `turn`: the one to open at, from 0. */
export function rolloutPage(id: string, turn?: number): string {
  return `/rollouts/${encodeURIComponent(id)}${turn === undefined ? "" : `?turn=${turn}`}`;
}
