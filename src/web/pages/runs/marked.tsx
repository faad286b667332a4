/** The runs that are marked for a comparison. */
import { useMemo } from "react";
import { useAddress } from "../../address.ts";
import { useKeys } from "../../layout/keys.tsx";

/** The most runs in one comparison. */
const MOST = 8;

/** The URL holds the marked runs; the first is the baseline. */
export function useMarked() {
  const [search, change] = useAddress();
  const text = search["marked"] ?? "";
  const marked = useMemo(() => text.split(",").filter((id) => id !== ""), [text]);
  const mark = useMemo(() => {
    return (id: string) => {
      const next = marked.includes(id) ? marked.filter((one) => one !== id) : [...marked, id].slice(0, MOST);
      change({ marked: next.join(",") || undefined });
    };
  }, [marked, change]);
  return { marked, mark, clear: () => change({ marked: undefined }) };
}

interface MarkedProps {
  readonly marked: readonly string[];
  readonly onCompare: () => void;
  readonly onClear: () => void;
}

export function Marked({ marked, onCompare, onClear }: MarkedProps) {
  useKeys([{ keys: "c", label: "compare the marked runs", run: onCompare }]);
  return (
    <p className="row marked-runs" role="status">
      {marked.length === 0 && <span className="soft">Mark two to {MOST} runs to compare them.</span>}
      {marked.length > 0 && (
        <>
          <span>
            {marked.length} of at most {MOST} runs marked; the oldest is the baseline.
          </span>
          <button type="button" disabled={marked.length < 2} onClick={onCompare}>
            Compare <kbd>c</kbd>
          </button>
          <button type="button" className="quiet" onClick={onClear}>
            Unmark all
          </button>
        </>
      )}
    </p>
  );
}
