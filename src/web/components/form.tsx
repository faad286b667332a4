/** Forms: fields with labels and help. An error of the API is shown at the field that it names (`param`). */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, useContext, useId } from "react";
import { ApiRequestError } from "../../sdk/request-error.ts";
import { ErrorNote } from "./error-note.tsx";
import { Shown } from "./shown.tsx";

const Refused = createContext<ApiRequestError | null>(null);

interface FormProps<Answer> {
  readonly children: ReactNode;
  /** The label of the button, a verb. */
  readonly submit: string;
  readonly act: (fields: FormData) => Promise<Answer>;
  readonly onDone: (answer: Answer) => void;
  readonly changes?: readonly string[];
  /** The names of the fields that show their own errors. */
  readonly fields: readonly string[];
}

export function Form<Answer>({ children, submit, act, onDone, changes = [], fields }: FormProps<Answer>) {
  const queries = useQueryClient();
  const { mutate, isPending, error } = useMutation({
    mutationFn: act,
    onSuccess: async (answer) => {
      onDone(answer);
      await Promise.all(changes.map((noun) => queries.invalidateQueries({ queryKey: [noun] })));
    },
  });
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    mutate(new FormData(event.currentTarget));
  };
  const refused = error instanceof ApiRequestError ? error : null;
  const atField = refused?.param != null && fields.some((field) => isAbout(refused, field));
  return (
    <Refused value={refused}>
      <form className="fields" onSubmit={send}>
        {children}
        {error !== null && !atField && <ErrorNote error={error} />}
        <p>
          <button type="submit" className="primary" disabled={isPending}>
            {submit}
          </button>
        </p>
      </form>
    </Refused>
  );
}

function isAbout({ param }: ApiRequestError, field: string): boolean {
  return param === field || param?.startsWith(`${field}.`) === true;
}

interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly help?: ReactNode;
  /** Renders the control, with the ids of its label and its error. */
  readonly children: (control: {
    readonly id: string;
    readonly name: string;
    readonly "aria-describedby": string;
    readonly "aria-invalid": boolean;
  }) => ReactNode;
}

export function Field({ name, label, help, children }: FieldProps) {
  const id = useId();
  const refused = useContext(Refused);
  const wrong = refused !== null && isAbout(refused, name) ? refused : null;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, name, "aria-describedby": `${id}-help`, "aria-invalid": wrong !== null })}
      <span id={`${id}-help`} className="soft">
        {wrong !== null && (
          <span className="field-error" role="alert">
            <Shown text={wrong.message} />{" "}
          </span>
        )}
        {help}
      </span>
    </div>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly help?: ReactNode;
  readonly required?: boolean;
  readonly type?: "text" | "url" | "number" | "password";
  readonly placeholder?: string;
  /** What the field has at first. */
  readonly value?: string;
}

export function TextField({ name, label, help, required = false, type = "text", placeholder, value }: TextFieldProps) {
  return (
    <Field name={name} label={label} help={help}>
      {(control) => (
        <input
          {...control}
          type={type}
          required={required}
          placeholder={placeholder}
          defaultValue={value}
          autoComplete="off"
        />
      )}
    </Field>
  );
}

/** The text of a field; undefined if it is empty. */
export function textOf(fields: FormData, name: string): string | undefined {
  const value = fields.get(name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

export function numberOf(fields: FormData, name: string): number | undefined {
  const text = textOf(fields, name);
  return text === undefined ? undefined : Number(text);
}
