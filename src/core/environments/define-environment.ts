/** Defines an environment for export: arguments with a schema, declared needs, and a function that builds it. */
import type * as z from "zod";
import { checkWithin } from "../rubrics/work.ts";
import type { AnyEnvironment } from "./any-environment.ts";
import type { Awaitable, Need } from "./contract.ts";

// The environment is a type parameter although it is not used otherwise: if `build` returned `AnyEnvironment`, the
// compiler would infer the state of the built environment from that type, and not from `setupState`.
export interface EnvironmentDefinition<A extends z.ZodObject, E extends AnyEnvironment> {
  /** Use `z.strictObject`, so that a misspelt argument is an error. */
  readonly args: A;
  /** A function if the needs depend on the arguments; without arguments they then count as none. */
  readonly needs?: readonly Need[] | ((args: z.infer<A>) => readonly Need[]);
  /** False: its rollouts cannot be forked, since their state is not complete. Default true, false with `sql`. */
  readonly forkable?: boolean;
  readonly build: (args: z.infer<A>) => Awaitable<E>;
}

/** The `loadEnvironment` export of a module. Rejects with a ZodError if the arguments do not match the schema. */
export interface EnvironmentLoader<A extends z.ZodObject> {
  (args?: z.input<A>): Promise<AnyEnvironment>;
  readonly args: A;
  /** The needs without arguments; a built environment has its own. */
  readonly needs: readonly Need[];
  /** Loads the environment with unchecked arguments. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

export function defineEnvironment<A extends z.ZodObject, E extends AnyEnvironment>(
  definition: EnvironmentDefinition<A, E>,
): EnvironmentLoader<A> {
  const declared = definition.needs ?? [];
  const load = async (given: unknown): Promise<AnyEnvironment> => {
    const args = checkWithin(() => definition.args.parse(given ?? {}));
    const environment = await definition.build(args);
    // Authors may write JavaScript, so the type is checked.
    if (typeof environment?.route !== "function") {
      throw new TypeError("build must return an environment: a SingleTurnEnv, MultiTurnEnv, ToolEnv or EnvGroup");
    }
    const needs = typeof declared === "function" ? declared(args) : declared;
    // The definition must declare the needs of a group's members, since the platform grants only those.
    const hidden = environment.needs.find((need) => !needs.includes(need));
    if (hidden !== undefined) throw new TypeError(`a member needs ${hidden}: add it to needs`);
    environment.needs = needs;
    environment.forkable &&= definition.forkable !== false && !needs.includes("sql");
    return environment;
  };
  return Object.assign((args?: z.input<A>) => load(args), {
    args: definition.args,
    needs: typeof declared === "function" ? [] : declared,
    load,
  });
}
