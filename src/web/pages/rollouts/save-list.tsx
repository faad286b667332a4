/** Saves the rollouts that match the filter as a CSV file. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { saveRows } from "../../components/save-rows.ts";
import { csvHeader, csvRow } from "./csv.ts";

interface SaveListProps {
  readonly run: string;
  readonly filter: string | undefined;
  readonly sort: string | undefined;
  readonly metrics: readonly string[];
  readonly matched: number | null;
}

const ROWS_READ = 500;

export function SaveList({ run, filter, sort, metrics, matched }: SaveListProps) {
  const [written, setWritten] = useState(0);
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      saveRows(
        `${run}-rollouts.csv`,
        api.rollouts.list(run, { filter, sort, limit: ROWS_READ }),
        setWritten,
        (row) => csvRow(row, metrics),
        `${csvHeader(metrics)}\n`,
      ),
  });
  return (
    <>
      <span role="status" className="soft">
        {isPending && `${countText(written)} of ${matched === null ? "?" : countText(matched)} rows`}
      </span>
      <button type="button" disabled={isPending || matched === 0} onClick={() => mutate()}>
        Save as CSV
      </button>
      {error !== null && <ErrorNote error={error} />}
    </>
  );
}
