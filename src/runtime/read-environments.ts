/** The environments of this deployment, as the API shows them. */
import { ENVIRONMENTS, type RegisteredEnvironment } from "../../environments/registry.ts";
import { inputSchema } from "../core/input-schema.ts";
import type { EnvironmentView } from "../core/run.ts";
import { type Result, refuse } from "./accept-run.ts";
import { findEnvironment, pinOf } from "./environments.ts";

export function listEnvironments(): Promise<EnvironmentView[]> {
  return Promise.all(ENVIRONMENTS.map(viewOf));
}

export async function readEnvironment(named: string): Promise<Result<EnvironmentView>> {
  const registered = findEnvironment(named);
  if (registered === null) return refuse("not_found", `no environment ${named}`, "id");
  return { ok: true, value: await viewOf(registered) };
}

async function viewOf(registered: RegisteredEnvironment): Promise<EnvironmentView> {
  // Built with its defaults, only to say what its rows look like.
  const environment = await registered.load({});
  const source = environment.evalDataset ?? environment.dataset;
  return {
    object: "environment",
    ...pinOf(registered),
    args: inputSchema(registered.args),
    dataset: source.kind,
    row: inputSchema(source.schema),
    needs: [...registered.needs],
  };
}
