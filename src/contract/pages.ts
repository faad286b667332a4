/**
 * The paths of the web pages. The Worker replies to each path with the same HTML, whose program (src/web) shows what
 * the path names. All links to pages are made here.
 */
export const PAGES = [
  ...[
    "/",
    "/sign-in",
    "/runs",
    "/runs/new",
    "/runs/:id",
    "/runs/:id/rollouts",
    "/runs/:id/groups/:group",
    "/rollouts/:id",
  ],
  ...["/compare", "/environments", "/environments/:id", "/datasets", "/datasets/:id", "/endpoints", "/endpoints/:id"],
  ...["/fleets", "/fleets/:id", "/triggers", "/triggers/:id", "/webhooks", "/webhooks/:id", "/keys", "/usage"],
  "/shared",
] as const;

/** The token stays in the browser: the part after the `#` is never sent. */
export const sharedPage = (token: string): string => `/shared#${token}`;
export const runPage = (id: string): string => `/runs/${encodeURIComponent(id)}`;

/** `turn`: the number of the turn to show first, from 1. */
export function rolloutPage(id: string, turn?: number): string {
  return `/rollouts/${encodeURIComponent(id)}${turn === undefined ? "" : `?turn=${turn}`}`;
}
