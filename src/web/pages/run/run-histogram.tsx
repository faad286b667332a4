/** The distribution of one number over a run's rollouts; a bin links to its rollouts. The URL names the number. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId } from "react";
import type { Histogram as HistogramView } from "../../../contract/rollout-list.ts";
import type { RunView } from "../../../contract/run.ts";
import { measuresOf } from "../../../sdk/report-file.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, words } from "../../components/format.ts";
import { type Bin, Histogram } from "../../components/histogram.tsx";
import { Loading } from "../../components/loading.tsx";
import { useFrozen } from "../../frozen.ts";
import { hasEnded } from "./progress.ts";
import { binFilter } from "./rollout-links.tsx";

const LIVE_MS = 5000;

export const histogramKey = (run: string, of: string) => ["histogram", run, of] as const;

export function RunHistogram({ run }: { readonly run: RunView }) {
  const [search, change] = useAddress();
  const navigate = useNavigate();
  const label = useId();
  const measures = measuresOf(run);
  const frozen = useFrozen();
  const of = measures.find((one) => one === search["of"]) ?? "reward";
  const { data, error, refetch } = useQuery({
    queryKey: histogramKey(run.id, of),
    queryFn: ({ signal }) => api.runs.histogram(run.id, { of }, { signal }),
    enabled: !frozen,
    refetchInterval: frozen || hasEnded(run) ? false : LIVE_MS,
    placeholderData: keepPreviousData,
  });
  const open = (bin: Bin) => {
    // While another histogram loads, the previous one is shown, so the bins belong to `data.of`.
    if (data === undefined) return;
    const filter = binFilter(data, bin);
    const to = { to: "/runs/$id/rollouts", params: { id: run.id } } as const;
    navigate({ ...to, search: { filter } as never }).catch(reportError);
  };
  return (
    <>
      <p>
        <label htmlFor={label}>Of</label>{" "}
        <select id={label} value={of} onChange={({ target }) => change({ of: target.value })}>
          {measures.map((one) => (
            <option key={one} value={one}>
              {one === "duration" ? "duration (seconds)" : one}
            </option>
          ))}
        </select>
      </p>
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {data === undefined && error === null && <Loading what="the histogram" />}
      {data?.bins.length === 0 && <p className="soft">No values yet: {besides(data)}.</p>}
      {data !== undefined && data.bins.length > 0 && (
        <HistogramFigure histogram={data} {...(!frozen && { onPick: open })} />
      )}
    </>
  );
}

interface HistogramFigureProps {
  readonly histogram: HistogramView;
  readonly onPick?: (bin: Bin) => void;
}

export function HistogramFigure({ histogram, onPick }: HistogramFigureProps) {
  const { of, bins, whole } = histogram;
  return (
    <Histogram
      title={of === "duration" ? "duration, in seconds" : words(of)}
      bins={bins}
      whole={whole}
      besides={besides(histogram)}
      {...(onPick !== undefined && { onPick })}
    />
  );
}

/** The rollouts that no bin contains, so that every rollout is accounted for. */
function besides({ counts }: HistogramView): string {
  const { values, null: without, failed, in_flight } = counts;
  return [
    `${countText(values)} in these bins`,
    `${countText(without)} without a value`,
    `${countText(failed)} failed`,
    `${countText(in_flight)} in flight`,
  ].join(", ");
}
