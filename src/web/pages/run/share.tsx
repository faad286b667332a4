/** Public links to the run's report: created, listed and revoked. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { timeText } from "../../components/format.ts";
import { ShownOnce } from "../../components/said-once.tsx";
import { useMay } from "../../layout/session.tsx";

const DAY_S = 86_400;
const LASTS = [1, 7, 30, 90] as const;

export function ShareReport({ runId }: { readonly runId: string }) {
  const mayWrite = useMay("runs:write");
  const [days, setDays] = useState<number>(7);
  const [url, setUrl] = useState<string | null | undefined>();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: ["report-links", runId],
    queryFn: ({ signal }) => api.reportLinks.list(runId, { limit: 100 }, { signal }),
  });
  const share = async () => {
    setUrl((await api.reportLinks.create(runId, { expires_in_s: days * DAY_S })).url);
    await queries.invalidateQueries({ queryKey: ["report-links", runId] });
  };
  return (
    <section aria-label="Public links">
      <p>
        A link shows the report to anybody who has it: numbers and error classes, but no prompts, completions or
        addresses.
      </p>
      {mayWrite && (
        <p className="row">
          <label className="row">
            For
            <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {LASTS.map((one) => (
                <option key={one} value={one}>
                  {one === 1 ? "a day" : `${one} days`}
                </option>
              ))}
            </select>
          </label>
          <ActionButton act={share}>Create a link</ActionButton>
        </p>
      )}
      {url !== undefined && <ShownOnce what="link" value={url} onClose={() => setUrl(undefined)} />}
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      <ul className="plain">
        {data?.data.map(({ id, created_by, expires_at }) => (
          <li key={id} className="row">
            <code>{id}</code> by <code>{created_by}</code>, ends {timeText(expires_at)}
            {mayWrite && (
              <ActionButton act={() => api.reportLinks.delete(id)} changes={["report-links"]}>
                Revoke
              </ActionButton>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
