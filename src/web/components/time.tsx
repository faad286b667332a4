import { useEffect, useState } from "react";
import { agoText, NOTHING, timeText } from "./format.ts";

/** How long ago something was, kept current, with the exact time as the tooltip. `at`: seconds since the epoch. */
export function Ago({ at }: { readonly at: number | null }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 15_000);
    return () => clearInterval(timer);
  }, []);
  if (at === null) return NOTHING;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={timeText(at)}>
      {agoText(at, now)}
    </time>
  );
}
