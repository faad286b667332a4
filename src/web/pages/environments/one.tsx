/**
 * One environment: what it is, its arguments and its needs; for a published one also its README, its versions and its
 * validation. The address names a version, a range or a tag, or else the newest version is shown.
 */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import type { EnvironmentView } from "../../../contract/run.ts";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { bytesText, numberText, timeText } from "../../components/format.ts";
import { JsonView } from "../../components/json-view.tsx";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { type Tab, Tabs } from "../../components/tabs.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { Commands } from "./commands.tsx";
import { Needs } from "./needs.tsx";
import { Results } from "./results.tsx";
import { StartRun } from "./start-run.tsx";
import { useReadme, useVersions } from "./use-published.ts";
import { Validation } from "./validation.tsx";
import { statesOf, Versions } from "./versions.tsx";
import "./environments.css";

const Readme = lazy(async () => ({ default: (await import("./readme.tsx")).Readme }));

export function Page() {
  const id = useParam("id");
  const [name = "", wanted] = id.split("@");
  const read = useQuery({
    queryKey: ["environment", id],
    queryFn: ({ signal }) => api.environments.get(id, { signal }),
  });
  const title = read.data === undefined ? id : `${read.data.id}@${read.data.version}`;
  useDocumentTitle(title);
  return (
    <main className="environment">
      <h1>
        <Shown text={title} />
      </h1>
      {name.includes("/") ? <Published key={name} name={name} wanted={wanted} {...read} /> : <BuiltIn {...read} />}
    </main>
  );
}

interface Read {
  readonly data: EnvironmentView | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

function BuiltIn({ data, error, refetch }: Read) {
  if (error !== null) return <ErrorNote error={error} onRetry={refetch} />;
  if (data === undefined) return <Loading what="this environment" />;
  return <Tabs label="Environment" tabs={[shapeTab(data), runTab(data), resultsTab(data.id, data.version)]} />;
}

interface PublishedProps extends Read {
  /** `owner/name`. */
  readonly name: string;
  readonly wanted: string | undefined;
}

/** The platform has deleted the code of a version that was taken down, so it describes only the version. */
function Published({ name, wanted, data, error, refetch }: PublishedProps) {
  const versions = useVersions(name);
  const version = data?.published ?? versions.data?.find((one) => one.version === wanted) ?? null;
  const about: Tab[] =
    version === null
      ? []
      : [{ id: "readme", name: "About", body: () => <About version={version} environment={data} /> }];
  const validation: Tab[] =
    version === null ? [] : [{ id: "validation", name: "Validation", body: () => <Validation {...version} /> }];
  const results = resultsTab(data?.id ?? name, version?.version ?? "");
  const run = data !== undefined || version?.taken_down ? [runTab(data)] : [];
  const shape = data === undefined || data.published?.kind === "python" ? [] : [shapeTab(data)];
  return (
    <>
      {version !== null && <Head {...version} />}
      {error !== null && !version?.taken_down && <ErrorNote error={error} onRetry={refetch} />}
      {data === undefined && error === null && <Loading what="this environment" />}
      {(data !== undefined || error !== null) && (
        <Tabs
          label="Environment"
          tabs={[
            ...about,
            ...run,
            ...validation,
            results,
            { id: "versions", name: "Versions", body: () => <Versions {...versions} /> },
            ...shape,
          ]}
        />
      )}
    </>
  );
}

function shapeTab(environment: EnvironmentView): Tab {
  return { id: "arguments", name: "Arguments", body: () => <Shape {...environment} /> };
}

function runTab(environment: EnvironmentView | undefined): Tab {
  return { id: "run", name: "New run", body: () => <StartRun environment={environment} /> };
}

function resultsTab(name: string, version: string): Tab {
  return { id: "results", name: "Results", body: () => <Results name={name} version={version} /> };
}

function Head(version: PublishedVersion) {
  const { description } = version;
  return (
    <>
      {description !== null && (
        <p>
          <Shown text={description} />
        </p>
      )}
      {statesOf(version).map(({ state, tone, reason }) => (
        <p key={state} className={`note ${tone}`}>
          <Badge state={state} tone={tone} /> <Shown text={reason} />
        </p>
      ))}
    </>
  );
}

interface AboutProps {
  readonly version: PublishedVersion;
  readonly environment: EnvironmentView | undefined;
}

function About({ version, environment }: AboutProps) {
  const { visibility, license, tags, digest, provenance, created_at, created_by } = version;
  return (
    <div className="columns about">
      <section aria-labelledby="readme">
        <h2 id="readme">README</h2>
        {version.taken_down === null ? <LoadedReadme id={version.id} /> : <p>Its files were deleted.</p>}
      </section>
      <aside>
        {version.taken_down === null && <Commands {...version} />}
        {environment !== undefined && version.kind !== "python" && (
          <>
            <h2>Needs</h2>
            <Needs name={version.name} needs={environment.needs} />
          </>
        )}
        <h2>This version</h2>
        <Facts>
          <Fact name="Visible to">{VISIBLE_TO[visibility]}</Fact>
          <Fact name="Tags">{tags.join(", ") || "none"}</Fact>
          <Fact name="Licence">{license === null ? "none given" : <Shown text={license} />}</Fact>
          <Fact name="Published">{timeText(created_at)}</Fact>
          <Fact name="By">
            <code>{created_by}</code>
          </Fact>
          <Fact name="Package">{bytesText(version.package.bytes)}</Fact>
          <Fact name="Integrity">
            <code>{version.package.integrity}</code>
          </Fact>
          <Fact name="Digest of the code">
            <code>{digest}</code>
          </Fact>
          <Said name="Repository" text={provenance.repository} />
          <Said name="Commit" text={provenance.commit} />
          <Said name="Built by" text={provenance.builder} />
        </Facts>
        <p className="soft">Repository, commit and builder are what the publisher says.</p>
      </aside>
    </div>
  );
}

const VISIBLE_TO: Readonly<Record<PublishedVersion["visibility"], string>> = {
  private: "the project that published it",
  organisation: "all projects of its organisation",
  public: "everybody on this platform",
};

function Said({ name, text }: { readonly name: string; readonly text: string | null }) {
  return <Fact name={name}>{text === null ? "not said" : <Shown text={text} />}</Fact>;
}

function LoadedReadme({ id }: { readonly id: string }) {
  const { data, error, refetch } = useReadme(id);
  const loading = <Loading what="the README" />;
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return loading;
  if (data === null) return <p>This version has no README.</p>;
  return (
    <Suspense fallback={loading}>
      <Readme text={data} />
    </Suspense>
  );
}

/** What a run must give it. */
function Shape({ digest, dataset, judges, needs, args, row, max_reward, published }: EnvironmentView) {
  return (
    <>
      <Facts>
        <Fact name="Tasks">{dataset ?? "depends on its arguments"}</Fact>
        <Fact name="Judges">{judges.join(", ") || "none"}</Fact>
        {max_reward !== undefined && <Fact name="Best possible reward">{numberText(max_reward)}</Fact>}
        {published === null && (
          <>
            <Fact name="Needs">{needs.join(", ") || "nothing"}</Fact>
            <Fact name="Digest">
              <code>{digest}</code>
            </Fact>
          </>
        )}
      </Facts>
      <h2>Arguments</h2>
      <JsonView value={args} what="JSON Schema of the arguments" />
      {row !== null && (
        <>
          <h2>Rows</h2>
          <JsonView value={row} what="JSON Schema of a row" />
        </>
      )}
    </>
  );
}
