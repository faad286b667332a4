/** The estimated cost of a run, and the button that starts it. An error is shown at the field that it names. */
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import type { CreatedRun, RunRequestInput } from "../../../contract/run.ts";
import type { ExpectedMicros, RunPreview } from "../../../contract/run-preview.ts";
import type { TrainerSecrets } from "../../../contract/training-view.ts";
import { ApiRequestError } from "../../../sdk/request-error.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, dollarsText, NOTHING } from "../../components/format.ts";
import { ShownOnce } from "../../components/said-once.tsx";
import { useMay } from "../../layout/session.tsx";
import type { Field } from "./fields.ts";
import { type Built, fieldOf } from "./request.ts";

/** The errors of the form: fields that cannot be sent, once the user has tried, and the refusal of the platform. */
export interface Refusal {
  readonly shown: boolean;
  /** The field that the error belongs to. */
  readonly param: string | null;
  readonly message: string | null;
  /** An error that belongs to no field. */
  readonly error: unknown;
}

interface SubmitProps {
  readonly built: Built;
  readonly fields: readonly Field[];
  readonly refusal: Refusal;
  readonly onRefusal: (refusal: Refusal) => void;
}

export function Submit({ built, fields, refusal, onRefusal }: SubmitProps) {
  const mayWrite = useMay("runs:write");
  const navigate = useNavigate();
  const keyOf = useIdempotencyKey();
  const open = ({ id }: CreatedRun) => navigate({ to: "/runs/$id", params: { id }, search: {} });
  const refused = (error: unknown) => {
    const param = error instanceof ApiRequestError ? fieldOf(error.param, fields) : null;
    const message = error instanceof Error ? error.message : String(error);
    onRefusal({ shown: true, param, message, error: param === null ? error : null });
  };
  const preview = useMutation({
    mutationFn: () => api.runs.preview(asRequest(built)),
    onSuccess: () => onRefusal({ shown: true, param: null, message: null, error: null }),
    onError: refused,
  });
  const create = useMutation({
    mutationFn: () => api.runs.create(asRequest(built), { idempotencyKey: keyOf(JSON.stringify(built.request)) }),
    onSuccess: (run) => {
      if (run.trainer == null) open(run).catch(reportError);
    },
    onError: refused,
  });
  const wrong = Object.keys(built.wrong).length;
  const attempt = (mutate: () => void) => () => {
    if (wrong === 0) mutate();
    else onRefusal({ shown: true, param: null, message: null, error: null });
  };
  const isBusy = preview.isPending || create.isPending;
  const made = create.data;
  if (made?.trainer != null) {
    return <Secrets secrets={made.trainer} onKept={() => open(made).catch(reportError)} />;
  }
  return (
    <div>
      {refusal.shown && wrong > 0 && (
        <p className="field-error" role="alert">
          {wrong === 1 ? "One field" : `${wrong} fields`} above must be corrected.
        </p>
      )}
      {refusal.error !== null && <ErrorNote error={refusal.error} />}
      {preview.data !== undefined && <Preview preview={preview.data} />}
      <p className="row">
        <button
          type="button"
          className="primary"
          disabled={isBusy || !mayWrite}
          onClick={attempt(() => create.mutate())}
        >
          Start the run
        </button>
        <button type="button" disabled={isBusy || !mayWrite} onClick={attempt(() => preview.mutate())}>
          Estimate the cost
        </button>
      </p>
    </div>
  );
}

interface SecretsProps {
  readonly secrets: TrainerSecrets;
  readonly onKept: () => void;
}

/** The trainer's secrets are shown once: the page continues when the reader has saved all of them. */
function Secrets({ secrets: { token, push_secret }, onKept }: SecretsProps) {
  const [kept, setKept] = useState<readonly string[]>([]);
  const all = [
    ["token of its trainer", token],
    ...(push_secret === null ? [] : [["secret that signs offers", push_secret] as const]),
  ] as const;
  const keep = (what: string) => {
    const next = [...kept, what];
    setKept(next);
    if (next.length === all.length) onKept();
  };
  return (
    <section aria-label="The run has started">
      {all
        .filter(([what]) => !kept.includes(what))
        .map(([what, value]) => (
          <ShownOnce key={what} what={what} value={value} onClose={() => keep(what)} />
        ))}
    </section>
  );
}

/** The form's fields are those of the request; the platform parses it, and refuses unknown fields. */
function asRequest({ request }: Built): RunRequestInput {
  const input: unknown = request;
  return input as RunRequestInput;
}

/** The same key for the same request, so that a retry does not start it twice; a new key for another request. */
function useIdempotencyKey(): (request: string) => string {
  const last = useRef({ request: "", key: "" });
  return (request) => {
    if (last.current.request !== request) last.current = { request, key: crypto.randomUUID() };
    return last.current.key;
  };
}

function Preview({ preview }: { readonly preview: RunPreview }) {
  const { rollouts, based_on, charged_micros, policy_micros, judge_micros, price_version } = preview;
  const rows = [
    ["The platform", charged_micros],
    ["Tokens of the model", policy_micros],
    ["Judges", judge_micros],
  ] as const;
  return (
    <section className="note" aria-label="Estimated cost" role="status">
      <p>
        {rollouts === null ? "Rollouts until its batches are full" : `${countText(rollouts)} rollouts`}
        {price_version === null ? "; nothing is charged here." : `; prices of ${price_version}.`}
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Of</th>
            <th scope="col">Expected</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, expected]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{expectedText(expected)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="soft">
        {based_on.rollouts === 0
          ? "No run of this environment and model has ended yet, so there is no estimate."
          : `From ${countText(based_on.rollouts)} rollouts of ${countText(based_on.runs)} ended runs.`}
      </p>
    </section>
  );
}

function expectedText(expected: ExpectedMicros): string {
  if (expected === null) return `${NOTHING} not known`;
  const { expected: middle, low, high } = expected;
  if (low === null || high === null) return dollarsText(middle);
  return `${dollarsText(middle)}, between ${dollarsText(low)} and ${dollarsText(high)}`;
}
