import { Shown } from "../../components/shown.tsx";
import { choosable } from "./columns.tsx";

interface ColumnChooserProps {
  readonly metrics: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
}

/** Chooses which columns are shown; at least one. */
export function ColumnChooser({ metrics, chosen, onChange }: ColumnChooserProps) {
  const toggle = (id: string, isOn: boolean) => {
    const next = isOn ? [...chosen, id] : chosen.filter((one) => one !== id);
    if (next.length > 0) onChange(next);
  };
  return (
    <details className="columns-chooser">
      <summary>Columns</summary>
      <fieldset>
        <legend className="visually-hidden">Visible columns</legend>
        {choosable(metrics).map(({ id, name }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={chosen.includes(id)}
              onChange={({ target }) => toggle(id, target.checked)}
            />{" "}
            <Shown text={name} />
          </label>
        ))}
      </fieldset>
    </details>
  );
}
