/**
 * A form for a run. Its fields are made from the environment's JSON Schema and from the choices; the same run is shown
 * next to it as a command and as code. The URL may contain `environment`, `kind`, `endpoint`, `fleet`, `dataset` and
 * `model`.
 */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { EnvironmentView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useDocumentTitle } from "../../layout/title.ts";
import { FieldInput, Known, useKnown } from "./field-input.tsx";
import { type Kind, PLACES, type Place, paramOf, sectionsOf } from "./fields.ts";
import { type Built, buildRequest, type Written } from "./request.ts";
import { Snippets } from "./snippets.tsx";
import { type Refusal, Submit } from "./submit.tsx";
import "./new-run.css";

export function Page() {
  useDocumentTitle("New run");
  const [{ environment: name }] = useAddress();
  const { data, error, refetch } = useEnvironments();
  const named = useNamed(name, data);
  return (
    <main className="new-run">
      <h1>New run</h1>
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {named.error !== null && <ErrorNote error={named.error} onRetry={named.refetch} />}
      {((data === undefined && error === null) || named.isLoading) && <Loading what="environments" />}
      {data !== undefined && !named.isLoading && named.error === null && (
        <NewRun environments={named.data === undefined ? data : [named.data, ...data]} named={named.data} />
      )}
    </main>
  );
}

/** The environment of the URL, if the first page of the list does not have this version of it. */
function useNamed(name: string | undefined, listed: readonly EnvironmentView[] | undefined) {
  const isListed = listed?.some((one) => isNamed(one, name)) ?? true;
  return useQuery({
    queryKey: ["environment", name],
    queryFn: ({ signal }) => api.environments.get(name ?? "", { signal }),
    enabled: name !== undefined && !isListed,
  });
}

/** Values that are chosen, not typed: they decide which fields there are. */
interface Chosen {
  readonly kind: Kind;
  readonly place: Place;
  readonly environment: string;
}

interface NewRunProps {
  readonly environments: readonly EnvironmentView[];
  /** The one to choose at first, if it is not in the list. */
  readonly named: EnvironmentView | undefined;
}

function NewRun({ environments, named }: NewRunProps) {
  const [search] = useAddress();
  const [chosen, setChosen] = useState<Chosen>(() => ({
    kind: search["kind"] === "training" ? "training" : "eval",
    place: search["fleet"] === undefined ? "endpoint" : "fleet",
    environment: labelOf(named ?? environments.find((one) => isNamed(one, search["environment"])) ?? environments[0]),
  }));
  const [written, setWritten] = useState<Written>(() => startOf(search));
  const [refusal, setRefusal] = useState<Refusal>(NO_REFUSAL);
  const environment = environments.find((one) => labelOf(one) === chosen.environment);
  const sections = useMemo(() => sectionsOf(chosen.kind, chosen.place, environment), [chosen, environment]);
  const fields = useMemo(() => sections.flatMap((section) => section.fields), [sections]);
  const built: Built = useMemo(() => buildRequest({ ...chosen, fields, written }), [chosen, fields, written]);
  const known = useKnown();
  const form = useRef<HTMLFormElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another field may be refused than before
  useEffect(() => {
    if (refusal.shown) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refusal.shown, refusal.param]);
  const wrongAt = (param: string) => {
    if (refusal.shown && built.wrong[param] !== undefined) return built.wrong[param];
    return refusal.param === param ? (refusal.message ?? undefined) : undefined;
  };
  const write = (param: string, text: string) => {
    setWritten((before) => ({ ...before, [param]: text }));
    if (refusal.param === param) setRefusal({ ...refusal, param: null, message: null });
  };
  return (
    <div className="columns">
      <form ref={form} className="fields" aria-label="The run" onSubmit={(event) => event.preventDefault()}>
        <Choices chosen={chosen} onChange={setChosen} environments={environments} wrong={wrongAt("environment")} />
        {sections.map(({ name, fields: mine }) => (
          <fieldset key={name}>
            <legend>{name}</legend>
            {mine.map((field) => (
              <FieldInput
                key={paramOf(field)}
                field={field}
                value={written[paramOf(field)] ?? ""}
                wrong={wrongAt(paramOf(field))}
                onChange={(text) => write(paramOf(field), text)}
              />
            ))}
          </fieldset>
        ))}
        <Known known={known} endpoint={written["endpoint"]} />
        <Submit built={built} fields={fields} refusal={refusal} onRefusal={setRefusal} />
      </form>
      <Snippets request={built.request} />
    </div>
  );
}

const NO_REFUSAL: Refusal = { shown: false, param: null, message: null, error: null };

function labelOf(environment: EnvironmentView | undefined): string {
  return environment === undefined ? "" : `${environment.id}@${environment.version}`;
}

/** With or without its version. */
function isNamed(environment: EnvironmentView, name: string | undefined): boolean {
  return environment.id === name || labelOf(environment) === name;
}

function startOf(search: Readonly<Record<string, string | undefined>>): Written {
  const named = ["endpoint", "fleet", "dataset", "model"].flatMap((name) => {
    const text = search[name];
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(named);
}

interface ChoicesProps {
  readonly chosen: Chosen;
  readonly onChange: (chosen: Chosen) => void;
  readonly environments: readonly EnvironmentView[];
  readonly wrong: string | undefined;
}

const PLACE_NAMES: Readonly<Record<Place, string>> = { endpoint: "an endpoint", url: "a URL", fleet: "a fleet" };

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
          onChange={({ target }) => onChange({ ...chosen, environment: target.value })}
        >
          {environments.map((one) => (
            <option key={labelOf(one)}>{labelOf(one)}</option>
          ))}
        </select>
        {wrong !== undefined && <span className="field-error">{wrong}</span>}
      </div>
      <Radios
        name="Kind"
        options={{ eval: "an eval", training: "a training" }}
        value={chosen.kind}
        onChange={(kind) => onChange({ ...chosen, kind: kind === "training" ? "training" : "eval" })}
      />
      <Radios
        name="Its model is at"
        options={PLACE_NAMES}
        value={chosen.place}
        onChange={(text) => onChange({ ...chosen, place: PLACES.find((place) => place === text) ?? chosen.place })}
      />
    </fieldset>
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
