/** The compared runs with their roles, and the list from which others are added. */
import { useState } from "react";
import { useAddress } from "../../address.ts";
import { type Asked, addressOf, MOST_RUNS, ROLES, type Role } from "./asked.ts";
import { ChooseRuns } from "./choose-runs.tsx";
import { RunName } from "./run-name.tsx";

const ROLE_TEXTS: Readonly<Record<Role, string>> = {
  candidate: "one candidate with its baselines",
  baseline: "several candidates with one baseline",
};

export function RunPicker({ asked }: { readonly asked: Asked }) {
  const [, change] = useAddress();
  const [opened, setOpened] = useState<boolean | null>(null);
  const { runs, first, role } = asked;
  const isOpen = opened ?? runs.length < 2;
  const set = (changes: Partial<Pick<Asked, "runs" | "first" | "role">>) =>
    change(addressOf({ runs, first, role, ...changes }), { replace: false });
  const toggle = (id: string) => {
    // It stays open until the reader closes it.
    setOpened(true);
    set({ runs: runs.includes(id) ? runs.filter((one) => one !== id) : [...runs, id].slice(0, MOST_RUNS) });
  };
  return (
    <section aria-label="Which runs">
      {runs.length > 2 && (
        <label className="row">
          Compare
          <select value={role} onChange={({ target }) => set({ role: roleOf(target.value) })}>
            {ROLES.map((one) => (
              <option key={one} value={one}>
                {ROLE_TEXTS[one]}
              </option>
            ))}
          </select>
        </label>
      )}
      <ul className="picked">
        {runs.map((run) => (
          <PickedRun
            key={run}
            id={run}
            asked={asked}
            onFirst={() => set({ first: run })}
            onRemove={() => toggle(run)}
          />
        ))}
      </ul>
      {runs.length >= 2 && (
        <p>
          <button type="button" aria-expanded={isOpen} onClick={() => setOpened(!isOpen)}>
            {isOpen ? "Close the list of runs" : `Add a ${role === "candidate" ? "baseline" : "candidate"}`}
          </button>
        </p>
      )}
      {isOpen && <ChooseRuns asked={asked} onToggle={toggle} />}
    </section>
  );
}

function roleOf(text: string): Role {
  return ROLES.find((one) => one === text) ?? "candidate";
}

interface PickedRunProps {
  readonly id: string;
  readonly asked: Asked;
  readonly onFirst: () => void;
  readonly onRemove: () => void;
}

function PickedRun({ id, asked: { first, role }, onFirst, onRemove }: PickedRunProps) {
  return (
    <li className="row">
      <label className="row">
        <input type="radio" name="first" checked={id === first} onChange={onFirst} />
        {id === first ? `the ${role}` : `make it the ${role}`}
      </label>
      <span>
        <RunName id={id} /> <code className="soft">…{id.slice(-6)}</code>
      </span>
      <button type="button" className="quiet" onClick={onRemove}>
        Remove<span className="visually-hidden"> {id}</span>
      </button>
    </li>
  );
}
