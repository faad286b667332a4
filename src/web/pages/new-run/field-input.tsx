/** One field of the form, by its kind, with its help and its error. */
import { useId } from "react";
import { messageOf } from "../../components/error-note.tsx";
import { Shown } from "../../components/shown.tsx";
import { ChoiceOrText, type ControlProps } from "./choice-or-text.tsx";
import { type Field, written } from "./fields.ts";
import type { Known } from "./known.ts";

interface FieldInputProps {
  readonly field: Field;
  readonly value: string;
  readonly wrong: string | undefined;
  /** What exists and may be chosen; null for a field that is only written. */
  readonly choices: Known<string> | null;
  readonly onChange: (text: string) => void;
}

export function FieldInput({ field, value, wrong, choices, onChange }: FieldInputProps) {
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
      <Control field={field} control={control} choices={choices} />
      {choices !== null && choices.error !== null && (
        <span className="field-error" role="alert">
          What exists could not be read: <Shown text={messageOf(choices.error)} most={300} />{" "}
          <button type="button" className="link" onClick={choices.onRetry}>
            Try again
          </button>
        </span>
      )}
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

interface KindProps extends Pick<FieldInputProps, "field" | "choices"> {
  readonly control: ControlProps;
}

function Control({ field: { kind, label, options = [], placeholder, known }, control, choices }: KindProps) {
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
  if (choices !== null) {
    const hint = known === "models" ? undefined : "name or id";
    return <ChoiceOrText control={control} label={label} placeholder={hint} choices={choices} />;
  }
  const mode = kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal";
  return <input type="text" inputMode={mode} {...common} />;
}
