/**
 * The form that starts a run. Its fields are made from the environment's JSON Schema and from the choices; the same run
 * is shown next to it as a command and as code. The URL may contain `kind`, `endpoint`, `fleet`, `dataset` and `model`.
 * A reader who comes back to the same entry of the browser's history finds what was entered, except secrets.
 */
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { EnvironmentView, RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { Shown } from "../../components/shown.tsx";
import { useKept } from "../../kept.ts";
import { useMay } from "../../layout/session.tsx";
import { FieldInput } from "./field-input.tsx";
import {
  type Field,
  foldFields,
  foldSections,
  type Kind,
  labelOf,
  PLACES,
  type Place,
  paramOf,
  type Section,
  sectionsOf,
  withoutSecrets,
} from "./fields.ts";
import { choicesFor, textFor, useKnown } from "./known.ts";
import { chosenOf, textsOf } from "./preset.ts";
import { type Built, buildRequest, type Written } from "./request.ts";
import { Snippets } from "./snippets.tsx";
import { type Refusal, Submit } from "./submit.tsx";
import "./form.css";

/** Values that are chosen, not typed: they decide which fields there are. */
interface Chosen {
  readonly kind: Kind;
  readonly place: Place;
  readonly environment: string;
}

interface Entered {
  readonly chosen: Chosen;
  readonly written: Written;
}

interface RunFormProps {
  /** Those to choose from. */
  readonly environments: readonly EnvironmentView[];
  /** The one that is chosen at first. */
  readonly first: EnvironmentView | undefined;
  /** For evals of `first` only, with the rarely used fields folded. */
  readonly short?: boolean;
  /** The run whose settings the form begins with. */
  readonly from?: RunView | undefined;
  /** The judges of that run whose endpoint cannot be named. */
  readonly unnamed?: readonly string[];
}

export function RunForm({ environments, first, short = false, from, unnamed }: RunFormProps) {
  const [{ chosen, written }, setEntered] = useEntered(first, short, from && { from, unnamed });
  const setChosen = (changes: Partial<Chosen>) =>
    setEntered((before) => ({ ...before, chosen: { ...before.chosen, ...changes } }));
  const [refusal, setRefusal] = useState<Refusal>(NO_REFUSAL);
  const environment = environments.find((one) => labelOf(one) === chosen.environment);
  const sections = useMemo(() => sectionsOf(chosen.kind, chosen.place, environment), [chosen, environment]);
  const fields = useMemo(() => sections.flatMap((section) => section.fields), [sections]);
  const built: Built = useMemo(() => buildRequest({ ...chosen, fields, written }), [chosen, fields, written]);
  const known = useKnown();
  const mayWrite = useMay("runs:write");
  const form = useRef<HTMLFormElement>(null);
  const [attempts, setAttempts] = useState(0);
  useEffect(() => {
    if (attempts > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [attempts]);
  const refuse = (next: Refusal) => {
    setRefusal(next);
    setAttempts((before) => before + 1);
  };
  const wrongAt = (param: string) => {
    if (refusal.shown && built.wrong[param] !== undefined) return built.wrong[param];
    return refusal.param === param ? (refusal.message ?? undefined) : undefined;
  };
  const write = (param: string, text: string) => {
    setEntered((before) => ({ ...before, written: { ...before.written, [param]: text } }));
    if (refusal.param === param) setRefusal({ ...refusal, param: null, message: null });
  };
  const hasError = (field: Field) => wrongAt(paramOf(field)) !== undefined;
  const fieldsetOf = ({ name, fields: mine, hasPlace }: Section) => (
    <fieldset key={name}>
      <legend>{name}</legend>
      {hasPlace && <PlaceChoice place={chosen.place} onChange={(place) => setChosen({ place })} />}
      {mine.map((field) => (
        <FieldInput
          key={paramOf(field)}
          field={field}
          value={textFor(field, known, written[paramOf(field)] ?? "")}
          wrong={wrongAt(paramOf(field))}
          choices={choicesFor(field, known, written)}
          onChange={(text) => write(paramOf(field), text)}
        />
      ))}
    </fieldset>
  );
  const { shown, folded } = useMemo(() => (short ? foldSections(sections) : foldFields(sections)), [short, sections]);
  const wrongEnvironment = wrongAt("environment");
  return (
    <>
      {!mayWrite && <p className="note warn">To start a run, you need a key with the permission runs:write.</p>}
      <div className="columns run-form">
        <form ref={form} className="fields" aria-label="The run" onSubmit={(event) => event.preventDefault()}>
          {!short && <Choices {...{ chosen, environments }} onChange={setChosen} wrong={wrongEnvironment} />}
          {shown.map(fieldsetOf)}
          {folded.length > 0 && (
            <Folded hasError={folded.some((section) => section.fields.some(hasError))}>{folded.map(fieldsetOf)}</Folded>
          )}
          {short && wrongEnvironment !== undefined && <FieldError text={wrongEnvironment} />}
          <Submit built={built} fields={fields} refusal={refusal} onRefusal={refuse} />
        </form>
        <Snippets request={built.request} />
      </div>
    </>
  );
}

const NO_REFUSAL: Refusal = { shown: false, param: null, message: null, error: null };

interface Preset {
  readonly from: RunView;
  readonly unnamed: readonly string[] | undefined;
}

function useEntered(first: EnvironmentView | undefined, short: boolean, preset: Preset | undefined) {
  const [search] = useAddress();
  const environment = labelOf(first);
  const [kept, keep] = useKept<Entered>(`${short ? "eval" : "run"} of ${environment} ${preset?.from.id ?? ""}`);
  const [entered, setEntered] = useState<Entered>(() => {
    if (kept !== undefined) return kept;
    if (preset !== undefined) {
      const { from, unnamed } = preset;
      return { chosen: { ...chosenOf(from), environment }, written: textsOf(from, first, unnamed) };
    }
    return {
      chosen: {
        kind: search["kind"] === "training" && !short ? "training" : "eval",
        place: search["fleet"] === undefined ? "endpoint" : "fleet",
        environment,
      },
      written: startOf(search),
    };
  });
  useEffect(() => {
    keep({ ...entered, written: withoutSecrets(entered.written) });
  }, [entered, keep]);
  return [entered, setEntered] as const;
}

function startOf(search: Readonly<Record<string, string | undefined>>): Written {
  const named = ["endpoint", "fleet", "dataset", "model"].flatMap((name) => {
    const text = search[name];
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(named);
}

/** Opens by itself if a field in it has an error. */
function Folded({ hasError, children }: { readonly hasError: boolean; readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details open={isOpen || hasError} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>More options</summary>
      {children}
    </details>
  );
}

interface ChoicesProps {
  readonly chosen: Chosen;
  readonly onChange: (changes: Partial<Chosen>) => void;
  readonly environments: readonly EnvironmentView[];
  readonly wrong: string | undefined;
}

function Choices({ chosen, onChange, environments, wrong }: ChoicesProps) {
  return (
    <fieldset>
      <legend>Kind of run</legend>
      <div className="field">
        <label htmlFor="new-environment">Environment</label>
        <select
          id="new-environment"
          value={chosen.environment}
          aria-invalid={wrong !== undefined}
          onChange={({ target }) => onChange({ environment: target.value })}
        >
          {environments.map((one) => (
            <option key={labelOf(one)}>{labelOf(one)}</option>
          ))}
        </select>
        {wrong !== undefined && <FieldError text={wrong} />}
      </div>
      <Radios
        name="Kind"
        options={{ eval: "an eval", training: "a training" }}
        value={chosen.kind}
        onChange={(kind) => onChange({ kind: kind === "training" ? "training" : "eval" })}
      />
    </fieldset>
  );
}

function FieldError({ text }: { readonly text: string }) {
  return (
    <span className="field-error" role="alert">
      <Shown text={text} />
    </span>
  );
}

const PLACE_NAMES: Readonly<Record<Place, string>> = { endpoint: "an endpoint", url: "a URL", fleet: "a fleet" };

interface PlaceChoiceProps {
  readonly place: Place;
  readonly onChange: (place: Place) => void;
}

function PlaceChoice({ place, onChange }: PlaceChoiceProps) {
  return (
    <Radios
      name="The model is at"
      options={PLACE_NAMES}
      value={place}
      onChange={(text) => onChange(PLACES.find((one) => one === text) ?? place)}
    />
  );
}

interface RadiosProps {
  readonly name: string;
  readonly options: Readonly<Record<string, string>>;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Radios({ name, options, value, onChange }: RadiosProps) {
  return (
    <div className="row" role="radiogroup" aria-label={name}>
      <span>{name}</span>
      {Object.entries(options).map(([option, said]) => (
        <label key={option} className="row choice">
          <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
          {said}
        </label>
      ))}
    </div>
  );
}
