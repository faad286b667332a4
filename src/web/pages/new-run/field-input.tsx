/** One field of the form, by its kind, with its help and its error. */
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { api } from "../../client.ts";
import { Shown } from "../../components/shown.tsx";
import { ChoiceOrText, type ControlProps } from "./choice-or-text.tsx";
import { type Field, written } from "./fields.ts";
import type { Written } from "./request.ts";

interface FieldInputProps {
  readonly field: Field;
  readonly value: string;
  readonly wrong: string | undefined;
  /** What exists and may be chosen, for a field of `known`. */
  readonly values: readonly string[];
  readonly onChange: (text: string) => void;
}

export function FieldInput({ field, value, wrong, values, onChange }: FieldInputProps) {
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
      <Control field={field} control={control} values={values} />
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

interface KindProps extends Pick<FieldInputProps, "field" | "values"> {
  readonly control: ControlProps;
}

function Control({ field: { kind, label, options = [], placeholder, known }, control, values }: KindProps) {
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
  if (known !== undefined) {
    const hint = known === "models" ? undefined : "name or id";
    return <ChoiceOrText control={control} label={label} placeholder={hint} values={values} />;
  }
  const mode = kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal";
  return <input type="text" inputMode={mode} {...common} />;
}

const MOST = { limit: 100 } as const;

export const ENDPOINTS = { queryKey: ["endpoints", "known"], queryFn: () => api.endpoints.list(MOST) } as const;

/** The resources of the project, to choose from. A user without the permission gets none. */
export function useKnown() {
  const { data: endpoints } = useQuery(ENDPOINTS);
  const { data: fleets } = useQuery({ queryKey: ["fleets", "known"], queryFn: () => api.fleets.list(MOST) });
  const { data: datasets } = useQuery({ queryKey: ["datasets", "known"], queryFn: () => api.datasets.list(MOST) });
  return { endpoints: endpoints?.data ?? [], fleets: fleets?.data ?? [], datasets: datasets?.data ?? [] };
}

type Known = ReturnType<typeof useKnown>;

/** What exists for a field. The models are those of the endpoint in the form. */
export function valuesFor(field: Field, known: Known, written: Written): readonly string[] {
  if (field.known === undefined) return [];
  if (field.known !== "models") return distinct(known[field.known].map(({ name, id }) => name ?? id));
  const endpoint = written[field.endpointParam ?? "endpoint"];
  const chosen = known.endpoints.find(({ id, name }) => id === endpoint || name === endpoint);
  return distinct(chosen?.capabilities?.models ?? []);
}

/** The text in the field: the name of what an id names, if it is known. */
export function textFor(field: Field, known: Known, text: string): string {
  if (field.known === undefined || field.known === "models") return text;
  return known[field.known].find(({ id }) => id === text)?.name ?? text;
}

const distinct = (values: readonly string[]) => [...new Set(values)];
