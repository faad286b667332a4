/** Tabs whose choice is in the URL (`?tab=`). The first is shown if the URL names none. */
import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";
import { useAddress } from "../address.ts";

export interface Tab {
  readonly id: string;
  readonly name: ReactNode;
  readonly body: () => ReactNode;
}

export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  const [search, change] = useAddress();
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    tabs.findIndex(({ id }) => id === search["tab"]),
  );
  const shown = tabs[at];
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = (at + step + tabs.length) % tabs.length;
    change({ tab: tabs[next]?.id });
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  if (shown === undefined) return null;
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKey}>
        {tabs.map(({ id, name }) => (
          <button
            key={id}
            type="button"
            role="tab"
            id={`${base}-${id}`}
            aria-selected={id === shown.id}
            aria-controls={`${base}-panel`}
            tabIndex={id === shown.id ? 0 : -1}
            onClick={() => change({ tab: id })}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${shown.id}`} className="tab-panel">
        {shown.body()}
      </div>
    </>
  );
}
