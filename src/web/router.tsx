/**
 * The routes, one for each path of `PAGES`. A page's code is loaded when it is opened. A page keeps its state (filter,
 * sort, tab, turn) in the search of the URL, so that a link shows what its sender saw.
 */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import type { Search } from "./address.ts";
import { forgetWithHistory } from "./kept.ts";
import { Shell } from "./layout/shell.tsx";
import { NotFound } from "./pages/not-found.tsx";

const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  validateSearch: readSearch,
});

/** All values stay strings: `?turn=3` stays "3", and nothing is parsed as JSON. */
function readSearch(given: Record<string, unknown>): Search {
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]));
}

const page = (path: string, load: () => Promise<{ readonly Page: () => React.ReactNode }>) =>
  createRoute({ getParentRoute: () => rootRoute, path, component: lazyRouteComponent(load, "Page") });

const routes = [
  page("/", () => import("./pages/home/page.tsx")),
  page("/runs", () => import("./pages/runs/page.tsx")),
  page("/sign-in", () => import("./pages/sign-in/page.tsx")),
  page("/runs/new", () => import("./pages/new-run/page.tsx")),
  page("/runs/$id", () => import("./pages/run/page.tsx")),
  page("/runs/$id/rollouts", () => import("./pages/rollouts/page.tsx")),
  page("/runs/$id/groups/$group", () => import("./pages/group/page.tsx")),
  page("/rollouts/$id", () => import("./pages/rollout/page.tsx")),
  page("/compare", () => import("./pages/compare/page.tsx")),
  page("/environments", () => import("./pages/environments/page.tsx")),
  page("/environments/$id", () => import("./pages/environments/one.tsx")),
  page("/datasets", () => import("./pages/datasets/page.tsx")),
  page("/datasets/$id", () => import("./pages/datasets/one.tsx")),
  page("/endpoints", () => import("./pages/endpoints/page.tsx")),
  page("/endpoints/$id", () => import("./pages/endpoints/one.tsx")),
  page("/fleets", () => import("./pages/fleets/page.tsx")),
  page("/fleets/$id", () => import("./pages/fleets/one.tsx")),
  page("/triggers", () => import("./pages/triggers/page.tsx")),
  page("/triggers/$id", () => import("./pages/triggers/one.tsx")),
  page("/webhooks", () => import("./pages/webhooks/page.tsx")),
  page("/webhooks/$id", () => import("./pages/webhooks/one.tsx")),
  page("/keys", () => import("./pages/keys/page.tsx")),
  page("/usage", () => import("./pages/usage/page.tsx")),
  page("/shared", () => import("./pages/shared/page.tsx")),
];

export const router = createRouter({
  routeTree: rootRoute.addChildren(routes),
  defaultPreload: "intent",
  // Long lists are virtual: each restores its own position (kept.ts).
  scrollRestoration: true,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: printSearch,
});

forgetWithHistory(router.history);

function printSearch(search: Record<string, unknown>): string {
  const pairs = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}
