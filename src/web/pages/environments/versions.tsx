/** The versions of a published environment, and what is known against one. */
import { Link } from "@tanstack/react-router";
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { bytesText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import type { useVersions } from "./use-published.ts";

type States = Pick<PublishedVersion, "yanked" | "deprecated" | "taken_down" | "validation">;

const FAILING = "it was published although the validation found errors";

/** What is known against a version, each with its reason. */
export function statesOf({ yanked, deprecated, taken_down, validation }: States) {
  return [
    taken_down && { state: "taken down", tone: "bad" as const, reason: taken_down.reason },
    yanked && { state: "yanked", tone: "warn" as const, reason: yanked.reason },
    deprecated !== null && { state: "deprecated", tone: "warn" as const, reason: deprecated },
    validation["ok"] === false && { state: "failed its validation", tone: "warn" as const, reason: FAILING },
  ].filter((state) => typeof state === "object" && state !== null);
}

export function Versions({ data, error, refetch, hasNextPage, fetchNextPage }: ReturnType<typeof useVersions>) {
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="versions" />;
  return (
    <>
      <Scroll label="Versions">
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Tags</th>
              <th scope="col">State</th>
              <th scope="col">Published</th>
              <th scope="col" className="numeric">
                Package
              </th>
              <th scope="col">Licence</th>
              <th scope="col">Digest of the code</th>
            </tr>
          </thead>
          <tbody>
            {data.map((version) => (
              <Row key={version.id} {...version} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {hasNextPage && (
        <button type="button" onClick={() => fetchNextPage()}>
          Show older versions
        </button>
      )}
    </>
  );
}

function Row(version: PublishedVersion) {
  const { id, tags, created_at, digest, license } = version;
  return (
    <tr>
      <th scope="row">
        <Link to="/environments/$id" params={{ id }} search={{}}>
          {version.version}
        </Link>
      </th>
      <td>{tags.join(", ")}</td>
      <td>
        {statesOf(version).map(({ state, tone, reason }) => (
          <div key={state}>
            <Badge state={state} tone={tone} /> <Shown text={reason} />
          </div>
        ))}
      </td>
      <td>
        <Ago at={created_at} />
      </td>
      <td className="numeric">{bytesText(version.package.bytes)}</td>
      <td>{license === null ? "none" : <Shown text={license} />}</td>
      <td>
        <code title={digest}>{digest.slice(0, 19)}…</code>
      </td>
    </tr>
  );
}
