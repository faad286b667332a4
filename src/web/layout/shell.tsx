/** The frame of every page: the skip link, the navigation, the keys, the palette. */
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { api, chooseProject, chosenProject } from "../client.ts";
import { Loading } from "../components/loading.tsx";
import { PageBoundary } from "./boundary.tsx";
import { KeyHelp } from "./key-help.tsx";
import { KeyProvider, useKeys } from "./keys.tsx";
import { Palette, usePalette } from "./palette.tsx";
import { SECTIONS } from "./sections.ts";
import { SignedIn, useSession } from "./session.tsx";
import { THEMES, useTheme } from "./theme.ts";

/** Pages that need no sign-in. */
const OPEN = /^\/(sign-in|shared)\b/;

export function Shell() {
  const { pathname } = useLocation();
  return (
    <KeyProvider>
      {OPEN.test(pathname) ? (
        <PageArea />
      ) : (
        <SignedIn>
          <Frame />
        </SignedIn>
      )}
    </KeyProvider>
  );
}

function Frame() {
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = usePalette();
  const navigate = useNavigate();
  useKeys([
    { keys: "?", label: "show keyboard shortcuts", run: () => setHelp(true) },
    ...SECTIONS.map(({ name, path, key }) => ({
      keys: `g ${key}`,
      label: `go to ${name.toLowerCase()}`,
      run: () => navigate({ to: path, search: {} as never }).catch(reportError),
    })),
  ]);
  return (
    <div className="frame">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <Navigation onPalette={() => setPalette(true)} onHelp={() => setHelp(true)} />
      <PageArea />
      <KeyHelp open={help} onClose={() => setHelp(false)} />
      <Palette open={palette} onClose={() => setPalette(false)} />
    </div>
  );
}

function PageArea() {
  const { pathname } = useLocation();
  return (
    <div className="page" id="page" tabIndex={-1}>
      <PageBoundary key={pathname}>
        <Suspense fallback={<Loading what="the page" />}>
          <Outlet />
        </Suspense>
      </PageBoundary>
    </div>
  );
}

/** For users who may see any project of an organisation. */
function ProjectChoice() {
  const { data } = useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) => api.projects.list({ limit: 100 }, { signal }),
    staleTime: 60_000,
  });
  const projects = data?.data ?? [];
  const chosen = projects.find(({ id, name }) => [id, name].includes(chosenProject() ?? DEFAULT_PROJECT));
  if (projects.length < 2) return null;
  return (
    <label>
      <span className="visually-hidden">Project</span>
      <select value={chosen?.id ?? ""} onChange={(event) => chooseProject(event.target.value)}>
        {chosen === undefined && <option value="">no project</option>}
        {projects.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The project of calls that name none. */
const DEFAULT_PROJECT = "default";

async function signOut(): Promise<void> {
  await api.sessions.signOut();
  location.assign("/sign-in");
}

interface NavigationProps {
  readonly onPalette: () => void;
  readonly onHelp: () => void;
}

function Navigation({ onPalette, onHelp }: NavigationProps) {
  const { organization, project, who } = useSession();
  const [theme, setTheme] = useTheme();
  const { pathname } = useLocation();
  // On a narrow screen, the menu closes when another page opens.
  const [openOn, setOpenOn] = useState<string | null>(null);
  const isOpen = openOn === pathname;
  return (
    <header className={isOpen ? "side open" : "side"}>
      <Link to="/" search={{}} className="brand">
        Rollcall
      </Link>
      <button type="button" className="menu" aria-expanded={isOpen} onClick={() => setOpenOn(isOpen ? null : pathname)}>
        Menu
      </button>
      <p className="soft where">
        <span title={organization.id}>{organization.name}</span>
        {project !== null && <span title={project.id}> / {project.name}</span>}
        {project === null && <ProjectChoice />}
      </p>
      <nav aria-label="Pages">
        <ul>
          {SECTIONS.map(({ name, path }) => (
            <li key={path}>
              <Link
                to={path}
                search={{}}
                activeOptions={{ exact: path === "/" || pathname === "/runs/new", includeSearch: false }}
              >
                {name}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="side-end">
        <button type="button" className="quiet" onClick={onPalette}>
          Search <kbd>Ctrl K</kbd>
        </button>
        <button type="button" className="quiet" onClick={onHelp}>
          Shortcuts <kbd>?</kbd>
        </button>
        <a href="/docs">API reference</a>
        <label className="row">
          Theme
          <select
            value={theme}
            onChange={(event) => setTheme(THEMES.find((one) => one === event.target.value) ?? theme)}
          >
            {THEMES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <p className="soft">
          <code>{who}</code>
        </p>
        <button type="button" className="quiet" onClick={() => signOut().catch(reportError)}>
          Sign out
        </button>
      </div>
    </header>
  );
}
