/** What limits, groups and orders the list of runs. Everything is in the URL. */
import type { RunView } from "../../../contract/run.ts";
import { RUN_KINDS, RUN_STATUSES } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { Chip } from "../../components/chip.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { groupings, groupingText } from "./group-rows.ts";

export function Filters({ runs }: { readonly runs: readonly RunView[] }) {
  const [search, change] = useAddress();
  const { data: environments = [] } = useEnvironments();
  const ids = [...new Set(environments.map(({ id }) => id))];
  const { group } = search;
  return (
    <form className="row run-filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <SearchField
        value={search["search"] ?? ""}
        onChange={(text) => change({ search: text || undefined })}
        placeholder="name, model or key=value"
        action="search runs"
        most={200}
      />
      <Choice name="Kind" value={search["kind"]} options={RUN_KINDS} onChange={(kind) => change({ kind })} />
      <Choice name="Status" value={search["status"]} options={RUN_STATUSES} onChange={(status) => change({ status })} />
      <Choice
        name="Environment"
        value={search["environment"]}
        options={ids}
        onChange={(environment) => change({ environment })}
      />
      <Choice
        name="Group by"
        none="nothing"
        value={group}
        options={groupings(runs, group)}
        textOf={groupingText}
        onChange={(next) => change({ group: next })}
      />
      {(["model", "metadata"] as const).map((name) => {
        const value = search[name];
        return (
          value !== undefined && (
            <Chip key={name} name={name} value={value} onRemove={() => change({ [name]: undefined })} />
          )
        );
      })}
    </form>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
  /** The text for no value. */
  readonly none?: string;
  readonly textOf?: (option: string) => string;
  readonly onChange: (value: string | undefined) => void;
}

function Choice({ name, value = "", options, none = "any", textOf = (option) => option, onChange }: ChoiceProps) {
  const all = options.includes(value) || value === "" ? options : [...options, value];
  return (
    <label>
      {name}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">{none}</option>
        {all.map((one) => (
          <option key={one} value={one}>
            {textOf(one)}
          </option>
        ))}
      </select>
    </label>
  );
}
