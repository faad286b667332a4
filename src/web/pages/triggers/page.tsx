/** URLs at which another service's webhook starts a run, and a form that creates one. */
import { useState } from "react";
import { findLost } from "../../../contract/lost-json.ts";
import { type CreatedTrigger, TRIGGER_SCHEMES, type TriggerView } from "../../../triggers/wire.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { Field, TextField, textOf } from "../../components/form.tsx";
import { NOTHING, timeText } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { ShownOnce } from "../../components/said-once.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const COLUMNS: readonly Column<TriggerView>[] = [
  { id: "name", header: "Trigger", cell: ({ name }) => <Shown text={name} /> },
  { id: "scheme", header: "Signed as", width: 14, cell: ({ verify }) => verify.scheme },
  {
    id: "run",
    header: "Begins",
    cell: ({ run }) => <Shown text={String(run["environment"] ?? run["kind"] ?? "a run")} />,
  },
  {
    id: "next",
    header: "Next run",
    width: 22,
    cell: ({ next_at }) => (next_at === null ? NOTHING : timeText(next_at)),
  },
  { id: "concurrency", header: "While one is running", width: 21, cell: ({ concurrency }) => concurrency },
  {
    id: "state",
    header: "State",
    width: 14,
    cell: ({ disabled }) => (disabled ? <Badge state="disabled" tone="warn" /> : <Badge state="ready" />),
  },
  { id: "updated", header: "Changed", width: 14, cell: ({ updated_at }) => <Ago at={updated_at} /> },
];

export function Page() {
  const [made, setMade] = useState<CreatedTrigger | null>(null);
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="trigger"
          name="Create a trigger"
          submit="Create"
          permission="triggers:write"
          act={createTrigger}
          onMade={setMade}
          fields={["name", "verify", "schedule", "run", "map", "when"]}
        >
          <TriggerFields />
        </CreateResource>
      }
      title="Triggers"
      noun="trigger"
      list={(query, options) => api.triggers.list(query, options)}
      columns={COLUMNS}
      idOf={({ id }) => id}
      path="/triggers"
      empty={<p>No triggers yet.</p>}
    >
      {made?.secret != null && <ShownOnce what="secret" value={made.secret} onClose={() => setMade(null)} />}
    </ResourcesPage>
  );
}

const TEMPLATE = '{"environment": "gsm8k@1", "model": "qwen3-4b", "endpoint": "qwen"}';

function TriggerFields() {
  return (
    <>
      <TextField name="name" label="Name" required placeholder="on-merge" />
      <Field name="verify" label="Signing scheme">
        {(control) => (
          <select {...control} defaultValue="github">
            {TRIGGER_SCHEMES.map((scheme) => (
              <option key={scheme}>{scheme}</option>
            ))}
          </select>
        )}
      </Field>
      <TextField
        name="secret"
        label="Shared secret"
        type="password"
        help="Configure it at the sender too. For standard it is generated if you leave it empty."
      />
      <TextField
        name="schedule"
        label="Schedule (cron)"
        placeholder="0 6 * * 1"
        help="Minute, hour, day of the month, month, day of the week, in UTC. Empty: only deliveries start it."
      />
      <JsonField name="run" label="The run it starts" value={TEMPLATE} help="As for POST /v1/runs, without keys." />
      <JsonField name="map" label="Fields filled from the payload" value="{}" help='{"metadata.sha": "$.after"}' />
      <JsonField name="when" label="Required payload values" value="{}" help='{"$.ref": "refs/heads/main"}' />
    </>
  );
}

interface JsonFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly help: string;
}

function JsonField({ name, label, value, help }: JsonFieldProps) {
  return (
    <Field name={name} label={`${label} (JSON)`} help={help}>
      {(control) => <textarea {...control} rows={3} defaultValue={value} spellCheck={false} />}
    </Field>
  );
}

/** The value of a field that contains JSON. Throws SyntaxError with the field's name. */
function jsonOf<Value>(fields: FormData, name: string): Value {
  const text = textOf(fields, name) ?? "{}";
  let value: Value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`${name} is not JSON: ${error instanceof Error ? error.message : text}`, { cause: error });
  }
  const lost = findLost(text, value, name);
  if (lost !== null) throw new SyntaxError(lost.message);
  return value;
}

async function createTrigger(fields: FormData): Promise<CreatedTrigger> {
  const cron = textOf(fields, "schedule");
  const scheme = TRIGGER_SCHEMES.find((one) => one === textOf(fields, "verify")) ?? "standard";
  return await api.triggers.create({
    name: textOf(fields, "name") ?? "",
    verify: { scheme, secret: textOf(fields, "secret") },
    schedule: cron === undefined ? null : { cron },
    run: jsonOf(fields, "run"),
    map: jsonOf(fields, "map"),
    when: jsonOf(fields, "when"),
  });
}
