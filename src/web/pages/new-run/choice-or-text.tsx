import { useRef, useState } from "react";
import type { Known } from "./known.ts";

export type ControlProps = Readonly<Record<"id" | "value" | "aria-describedby", string>> & {
  readonly required: boolean;
  readonly "aria-invalid": boolean;
  readonly onChange: (event: { readonly target: { readonly value: string } }) => void;
};

interface ChoiceOrTextProps {
  readonly control: ControlProps;
  readonly label: string;
  /** In the field of a text. */
  readonly placeholder: string | undefined;
  /** What exists. */
  readonly choices: Pick<Known<string>, "data" | "isReading">;
}

/** The value of the choice of a text of one's own. No name begins with a space. */
const OTHER = " other";

/**
 * A choice from what exists, or a text; only a text if nothing is known to exist. While that is read, a choice without
 * options has its place.
 */
export function ChoiceOrText({ control, label, placeholder, choices }: ChoiceOrTextProps) {
  const { value, onChange } = control;
  const [writes, setWrites] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const text = { type: "text", autoComplete: "off", spellCheck: false, placeholder } as const;
  const { data: values, isReading } = choices;
  if (isReading) {
    return (
      <select {...control} disabled>
        <option value={value}>reading…</option>
      </select>
    );
  }
  if (values.length === 0) return <input {...control} {...text} />;
  const isOther = writes || (value !== "" && !values.includes(value));
  const choose = (chosen: string) => {
    setWrites(chosen === OTHER);
    onChange({ target: { value: chosen === OTHER ? "" : chosen } });
    if (chosen === OTHER) requestAnimationFrame(() => field.current?.focus());
  };
  return (
    <>
      <select {...control} value={isOther ? OTHER : value} onChange={({ target }) => choose(target.value)}>
        <option value="">{control.required ? "choose one" : "none"}</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
        <option value={OTHER}>another…</option>
      </select>
      {isOther && (
        <input
          ref={field}
          {...text}
          aria-label={`Another: ${label}`}
          value={value}
          onChange={onChange}
          maxLength={2000}
        />
      )}
    </>
  );
}
