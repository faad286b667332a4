/** What the code of a published environment may use, and what the project has granted it. */
import { useMutation } from "@tanstack/react-query";
import type { GrantView } from "../../../contract/published-environment.ts";
import { api, queryClient } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { useMay } from "../../layout/session.tsx";
import { useGrant } from "./use-published.ts";

/** Those that a run is refused for. */
export function missingNeeds(needs: readonly string[], { own, needs: granted }: GrantView): string[] {
  return own ? [] : needs.filter((need) => need !== "sql" && !granted.includes(need));
}

interface NeedsProps {
  /** `owner/name`. */
  readonly name: string;
  readonly needs: readonly string[];
}

export function Needs({ name, needs }: NeedsProps) {
  const { data: grant, error, refetch } = useGrant(name);
  if (needs.length === 0) return <p>It needs no secrets, no hosts and no database.</p>;
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (grant === undefined) return <Loading what="what is granted" />;
  const missing = missingNeeds(needs, grant);
  return (
    <>
      <ul className="needs">
        {needs.map((need) => (
          <li key={need}>
            <code>
              <Shown text={need} />
            </code>{" "}
            {missing.includes(need) ? (
              <Badge state="not granted" tone="warn" />
            ) : (
              <Badge state="may be used" tone="good" />
            )}
          </li>
        ))}
      </ul>
      {grant.own && <p className="soft">It belongs to your own organisation, so it may use what the project has.</p>}
      {missing.length > 0 && (
        <p>It belongs to another organisation. A run is refused until the project grants what is missing.</p>
      )}
      <Change name={name} granted={grant.needs} missing={missing} />
    </>
  );
}

interface ChangeProps {
  readonly name: string;
  readonly granted: readonly string[];
  readonly missing: readonly string[];
}

function Change({ name, granted, missing }: ChangeProps) {
  const mayGrant = useMay("secrets:write");
  const set = async (needs: readonly string[]) => {
    queryClient.setQueryData(["environment", name, "grant"], await api.environments.setGrant(name, needs));
  };
  const revoke = useMutation({ mutationFn: () => set([]) });
  if (!mayGrant) {
    return missing.length === 0 ? null : (
      <p className="soft">To grant it, you need a key with the permission secrets:write.</p>
    );
  }
  return (
    <div className="row">
      {missing.length > 0 && (
        <ConfirmButton name="Grant" act={() => set([...granted, ...missing])}>
          <p>All versions of {name}, also later ones, may use in runs of this project:</p>
          <ul>
            {missing.map((need) => (
              <li key={need}>
                <code>
                  <Shown text={need} />
                </code>
              </li>
            ))}
          </ul>
          <p>
            Its code was written by another organisation. It can send what it is given to the hosts that it may reach.
          </p>
        </ConfirmButton>
      )}
      {granted.length > 0 && (
        <button type="button" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
          Take all grants back
        </button>
      )}
      {revoke.error !== null && <ErrorNote error={revoke.error} />}
    </div>
  );
}
