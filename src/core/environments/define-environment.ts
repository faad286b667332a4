/** How a module offers an environment: arguments with a schema, declared needs, and a function that builds it. */
import type * as z from "zod";
import type { AnyEnvironment } from "./any-environment.ts";
import type { Awaitable, Need } from "./contract.ts";

// The environment is a type parameter although nothing is done with it: were `AnyEnvironment` the return type of `build`,
// the compiler would infer the state of the environment built there from it, and not from `setupState`.
export interface EnvironmentDefinition<A extends z.ZodObject, E extends AnyEnvironment> {
  /** Written with `z.strictObject`, so that a misspelt argument is an error. */
  readonly args: A;
  readonly needs?: readonly Need[];
  /** False: its rollouts cannot be taken up in the middle, since their state is not all there is. Default true, false with `sql`. */
  readonly forkable?: boolean;
  readonly build: (args: z.infer<A>) => Awaitable<E>;
}

/** What a module exports as `loadEnvironment`. Rejects with a ZodError when the arguments do not fit. */
export interface EnvironmentLoader<A extends z.ZodObject> {
  (args?: z.input<A>): Promise<AnyEnvironment>;
  readonly args: A;
  readonly needs: readonly Need[];
  /** The same for arguments of unknown origin. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

export function defineEnvironment<A extends z.ZodObject, E extends AnyEnvironment>(
  definition: EnvironmentDefinition<A, E>,
): EnvironmentLoader<A> {
  const needs = definition.needs ?? [];
  const load = async (args: unknown): Promise<AnyEnvironment> => {
    const environment = await definition.build(definition.args.parse(args ?? {}));
    environment.needs = needs;
    environment.forkable = definition.forkable !== false && !needs.includes("sql");
    return environment;
  };
  return Object.assign((args?: z.input<A>) => load(args), {
    args: definition.args,
    needs,
    load,
  });
}
