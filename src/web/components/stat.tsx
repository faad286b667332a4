/** One number with its name and its basis: its counts, a link to its rows. */
import type { ReactNode } from "react";

interface StatProps {
  readonly name: string;
  readonly value: ReactNode;
  /** The basis: "of 760 scored rollouts over 190 tasks". */
  readonly behind?: ReactNode;
}

export function Stats({ children }: { readonly children: ReactNode }) {
  return <dl className="stats">{children}</dl>;
}

export function Stat({ name, value, behind }: StatProps) {
  return (
    <div className="stat">
      <dt>{name}</dt>
      <dd>
        <span className="value">{value}</span>
        {behind !== undefined && <span className="behind">{behind}</span>}
      </dd>
    </div>
  );
}
