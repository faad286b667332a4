/** The environment a request names, built with the arguments it gives: for a run, or to check uploaded rows against. */
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import { findEnvironment, type HeldEnvironment } from "./environments.ts";
import { type Result, refuse } from "./refusal.ts";

export interface ChosenEnvironment {
  readonly registered: HeldEnvironment;
  readonly environment: AnyEnvironment;
}

/** `named`: `id` or `id@version`. Refuses with `environment` or `environment_args` as the field at fault. */
export async function chooseEnvironment(
  named: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Result<ChosenEnvironment>> {
  const registered = findEnvironment(named);
  if (registered === null) return refuse("not_found", `no environment ${named}`, "environment");
  const parsed = registered.args.safeParse(args);
  if (!parsed.success) return refuseArgs(parsed.error.issues[0]);
  const environment = await builtOrError(registered, args);
  if (environment instanceof Error) {
    const message = `${registered.id} cannot be built from these arguments: ${environment.message}`;
    return refuse("invalid_request", message, "environment_args");
  }
  return { ok: true, value: { registered, environment } };
}

/** The environment, or what its own code had to say against the arguments. */
export async function builtOrError(
  registered: HeldEnvironment,
  args: unknown,
): Promise<AnyEnvironment | Error> {
  try {
    return await registered.load(args);
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}

type Issue = NonNullable<
  ReturnType<HeldEnvironment["args"]["safeParse"]>["error"]
>["issues"][number];

function refuseArgs(issue: Issue | undefined): Result<never> {
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const path = [
    "environment_args",
    ...(issue?.path ?? []),
    ...(unknown === undefined ? [] : [unknown]),
  ];
  const code = unknown === undefined ? "invalid_request" : "unknown_field";
  return refuse(code, issue?.message ?? "does not fit the environment", path.join("."));
}
