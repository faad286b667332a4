/** API keys: their scopes, and forms that create, rotate and revoke them. A key itself is shown once. */
import { useState } from "react";
import type { ApiKeyView, CreatedKey } from "../../../accounts/wire.ts";
import { PERMISSIONS, type Permission } from "../../../contract/identity.ts";
import { api, queryClient } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ConfirmButton } from "../../components/confirm-button.tsx";
import type { Column } from "../../components/data-table.tsx";
import { TextField, textOf } from "../../components/form.tsx";
import { NOTHING, timeText } from "../../components/format.ts";
import { CreateResource, ResourcesPage } from "../../components/resource.tsx";
import { ShownOnce } from "../../components/said-once.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { useMay, useSession } from "../../layout/session.tsx";

export function Page() {
  const [made, setMade] = useState<CreatedKey | null>(null);
  const mayAdmin = useMay("admin");
  return (
    <ResourcesPage
      action={
        <CreateResource
          noun="key"
          name="Create a key"
          submit="Create"
          permission="admin"
          act={createKey}
          onMade={setMade}
          fields={["name", "project"]}
        >
          <KeyFields />
        </CreateResource>
      }
      title="Keys"
      noun="key"
      list={(query, options) => api.keys.list(query, options)}
      columns={columnsOf(mayAdmin, setMade)}
      idOf={({ id }) => id}
      empty={<p>No keys.</p>}
    >
      {made !== null && <ShownOnce what="key" value={made.key} onClose={() => setMade(null)} />}
    </ResourcesPage>
  );
}

function KeyFields() {
  const { scopes } = useSession();
  const held = scopes.includes("admin") ? PERMISSIONS.filter((one) => one !== "operator" && one !== "metrics") : scopes;
  return (
    <>
      <TextField name="name" label="Name" required placeholder="nightly evals" />
      <TextField name="project" label="Project" help="The only project it may access. Empty: all projects." />
      <fieldset>
        <legend>Scopes</legend>
        {held.map((scope) => (
          <label key={scope} className="check">
            <input type="checkbox" name="scopes" value={scope} /> {scope}
          </label>
        ))}
      </fieldset>
    </>
  );
}

function createKey(fields: FormData): Promise<CreatedKey> {
  const asked = fields.getAll("scopes");
  const scopes: Permission[] = PERMISSIONS.filter((one) => asked.includes(one));
  return api.keys.create({ name: textOf(fields, "name") ?? "", project: textOf(fields, "project") ?? null, scopes });
}

function columnsOf(mayAdmin: boolean, onMade: (key: CreatedKey) => void): readonly Column<ApiKeyView>[] {
  const read: readonly Column<ApiKeyView>[] = [
    { id: "name", header: "Key", cell: ({ name }) => <Shown text={name} /> },
    {
      id: "shown",
      header: "Starts, ends",
      width: 14,
      cell: ({ prefix, last4 }) => <code>{`${prefix}…${last4}`}</code>,
    },
    {
      id: "scopes",
      header: "May",
      width: 15,
      cell: ({ scopes }) => <span title={scopes.join(", ")}>{scopes.join(", ")}</span>,
    },
    { id: "project", header: "Project", width: 9, cell: ({ project_id }) => project_id ?? "any" },
    { id: "state", header: "State", width: 11, cell: (key) => <KeyState of={key} /> },
    { id: "expires", header: "Ends", width: 11, cell: ({ expires_at }) => timeOr(expires_at) },
    { id: "made", header: "Made", width: 11, cell: ({ created_at }) => <Ago at={created_at} /> },
  ];
  if (!mayAdmin) return read;
  return [
    ...read,
    { id: "change", header: "Change", width: 17, cell: (key) => <KeyActions of={key} onMade={onMade} /> },
  ];
}

function timeOr(at: number | null): string {
  return at === null ? "never" : timeText(at);
}

function isOver({ revoked_at, expires_at }: ApiKeyView): boolean {
  return revoked_at !== null || (expires_at !== null && expires_at * 1000 <= Date.now());
}

function KeyState({ of }: { readonly of: ApiKeyView }) {
  if (of.revoked_at !== null) return <Badge state="revoked" tone="plain" />;
  return isOver(of) ? <Badge state="expired" tone="plain" /> : <Badge state="ready" />;
}

interface KeyActionsProps {
  readonly of: ApiKeyView;
  readonly onMade: (key: CreatedKey) => void;
}

function KeyActions({ of, onMade }: KeyActionsProps) {
  if (isOver(of)) return NOTHING;
  const changed = () => queryClient.invalidateQueries({ queryKey: ["key"] });
  const rotate = async () => onMade(await api.keys.rotate(of.id));
  return (
    <span className="row">
      <ConfirmButton name="Rotate" act={rotate} onDone={changed}>
        A new key replaces it. This one works for another hour.
      </ConfirmButton>
      <ConfirmButton name="Revoke" destroys act={() => api.keys.revoke(of.id)} onDone={changed}>
        It is refused within 5 seconds, and so are sessions that use it.
      </ConfirmButton>
    </span>
  );
}
