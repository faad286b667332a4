/** One field of the form, by its kind, with its help and its error. */
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import type { EndpointView } from "../../../contract/endpoint.ts";
import { api } from "../../client.ts";
import { Shown } from "../../components/shown.tsx";
import { type Field, written } from "./fields.ts";

interface FieldInputProps {
  readonly field: Field;
  readonly value: string;
  readonly wrong: string | undefined;
  readonly onChange: (text: string) => void;
}

export function FieldInput({ field, value, wrong, onChange }: FieldInputProps) {
  const id = useId();
  const { label, help, required = false } = field;
  const control = {
    id,
    value,
    required,
    "aria-invalid": wrong !== undefined,
    "aria-describedby": `${id}-help`,
    onChange: ({ target }: { readonly target: { readonly value: string } }) => onChange(target.value),
  };
  return (
    <div className="field">
      <label htmlFor={id}>
        <Shown text={label} />
        {required && <span className="soft"> (required)</span>}
      </label>
      <Control field={field} control={control} />
      <span id={`${id}-help`} className="soft">
        {wrong !== undefined && (
          <span className="field-error" role="alert">
            <Shown text={wrong} />{" "}
          </span>
        )}
        {help !== undefined && <Shown text={help} />}
      </span>
    </div>
  );
}

interface ControlProps {
  readonly field: Field;
  readonly control: Readonly<Record<"id" | "value" | "aria-describedby", string>> & {
    readonly required: boolean;
    readonly "aria-invalid": boolean;
    readonly onChange: (event: { readonly target: { readonly value: string } }) => void;
  };
}

function Control({ field: { kind, options = [], placeholder, known }, control }: ControlProps) {
  const common = { ...control, autoComplete: "off", spellCheck: false, placeholder };
  if (kind === "choice") {
    return (
      <select {...control}>
        <option value="">{placeholder === undefined ? "" : `${placeholder} (default)`}</option>
        {options.map((option) => (
          <option key={written(option)} value={written(option)}>
            {written(option)}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "json" || kind === "long" || kind === "pairs") return <textarea rows={3} {...common} />;
  if (kind === "secret") return <input type="password" {...common} autoComplete="new-password" />;
  const mode = kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal";
  return <input type="text" inputMode={mode} {...common} list={known && listId(known)} />;
}

function listId(known: NonNullable<Field["known"]>): string {
  return `known-${known}`;
}

const MOST = { limit: 100 } as const;

/** The resources of the project, offered as completions. A user without the permission gets none. */
export function useKnown() {
  const { data: endpoints } = useQuery({ queryKey: ["endpoints", "known"], queryFn: () => api.endpoints.list(MOST) });
  const { data: fleets } = useQuery({ queryKey: ["fleets", "known"], queryFn: () => api.fleets.list(MOST) });
  const { data: datasets } = useQuery({ queryKey: ["datasets", "known"], queryFn: () => api.datasets.list(MOST) });
  return {
    endpoints: endpoints?.data ?? [],
    fleets: (fleets?.data ?? []).map(({ name }) => name),
    datasets: (datasets?.data ?? []).map(({ name, id }) => name ?? id),
  };
}

interface KnownProps {
  readonly known: ReturnType<typeof useKnown>;
  /** The endpoint in the form: its models are offered. */
  readonly endpoint: string | undefined;
}

export function Known({ known: { endpoints, fleets, datasets }, endpoint }: KnownProps) {
  const chosen = endpoints.find(({ id, name }) => id === endpoint || name === endpoint);
  return (
    <>
      <Options id={listId("endpoints")} values={endpoints.map(({ name, id }) => name ?? id)} />
      <Options id={listId("fleets")} values={fleets} />
      <Options id={listId("datasets")} values={datasets} />
      <Options id={listId("models")} values={modelsOf(chosen)} />
    </>
  );
}

function modelsOf(endpoint: EndpointView | undefined): readonly string[] {
  return endpoint?.capabilities?.models ?? [];
}

function Options({ id, values }: { readonly id: string; readonly values: readonly string[] }) {
  return (
    <datalist id={id}>
      {[...new Set(values)].map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}
