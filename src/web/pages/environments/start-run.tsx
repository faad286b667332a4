/** Starts an eval of the version that is shown, or says why it cannot be started and what to do. */
import { Link } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import type { EnvironmentView } from "../../../contract/run.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { Command, installCommand } from "./commands.tsx";
import { missingNeeds, Needs } from "./needs.tsx";
import { useGrant } from "./use-published.ts";

const RunForm = lazy(async () => ({ default: (await import("../new-run/form.tsx")).RunForm }));

interface StartRunProps {
  /** Undefined for a version that was taken down. */
  readonly environment: EnvironmentView | undefined;
}

export function StartRun({ environment }: StartRunProps) {
  if (environment === undefined) {
    return (
      <p>
        The operator took this version down, so no run can use it. Use <OtherVersion />.
      </p>
    );
  }
  const { id, version, needs, published } = environment;
  if (published?.kind === "python") return <Python {...published} />;
  const label = `${id}@${version}`;
  const form = (
    <>
      <p>
        This form starts an eval of this version. For a training, use the{" "}
        <Link to="/runs/new" search={{ environment: label, kind: "training" } as never}>
          form for all runs
        </Link>
        .
      </p>
      <Suspense fallback={<Loading what="the form" />}>
        <RunForm key={label} environments={[environment]} first={environment} short />
      </Suspense>
    </>
  );
  if (published === null) return form;
  return (
    <>
      {published.yanked !== null && (
        <p className="note warn">
          This version was yanked. A run that names exactly this version, as this form does, is still accepted. If you
          do not need exactly this one, use <OtherVersion />.
        </p>
      )}
      {needs.length === 0 ? form : <Granted {...{ name: id, needs }}>{form}</Granted>}
    </>
  );
}

function OtherVersion() {
  return (
    <Link to="." search={{ tab: "versions" } as never}>
      another version
    </Link>
  );
}

function Python(version: PublishedVersion) {
  return (
    <>
      <p>The platform does not play Python environments. Install this one where your evals or your training run:</p>
      <Command what="to install it" text={installCommand(version)} />
      {version.visibility !== "public" && <p className="soft">KEY is a key of one project.</p>}
    </>
  );
}

interface GrantedProps {
  /** `owner/name`. */
  readonly name: string;
  readonly needs: readonly string[];
  /** Shown if nothing is missing. */
  readonly children: ReactNode;
}

function Granted({ name, needs, children }: GrantedProps) {
  const { data: grant, error, refetch } = useGrant(name);
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (grant === undefined) return <Loading what="what is granted" />;
  if (missingNeeds(needs, grant).length === 0) return children;
  return (
    <>
      <p>This version cannot be run in this project yet, because of what it needs:</p>
      <Needs name={name} needs={needs} />
    </>
  );
}
