/** How a module offers an environment: arguments with a schema, declared needs, and a function that builds it. */
import type * as z from "zod";
import { checkWithin } from "../rubrics/work.ts";
import type { AnyEnvironment } from "./any-environment.ts";
import type { Awaitable, Need } from "./contract.ts";

// The environment is a type parameter although nothing is done with it: were `AnyEnvironment` the return type of
// `build`, the compiler would infer the state of the environment built there from it, and not from `setupState`.
export interface EnvironmentDefinition<A extends z.ZodObject, E extends AnyEnvironment> {
  /** Written with `z.strictObject`, so that a misspelt argument is an error. */
  readonly args: A;
  /** A function where they follow from the arguments; what is known without those is then nothing. */
  readonly needs?: readonly Need[] | ((args: z.infer<A>) => readonly Need[]);
  /**
   * False: its rollouts cannot be taken up in the middle, since their state is not all there is. Default true, false
   * with `sql`.
   */
  readonly forkable?: boolean;
  readonly build: (args: z.infer<A>) => Awaitable<E>;
}

/** What a module exports as `loadEnvironment`. Rejects with a ZodError when the arguments do not fit. */
export interface EnvironmentLoader<A extends z.ZodObject> {
  (args?: z.input<A>): Promise<AnyEnvironment>;
  readonly args: A;
  /** Without any arguments; an environment that was built has its own. */
  readonly needs: readonly Need[];
  /** Loads the environment with arguments of unknown origin. */
  readonly load: (args: unknown) => Promise<AnyEnvironment>;
}

export function defineEnvironment<A extends z.ZodObject, E extends AnyEnvironment>(
  definition: EnvironmentDefinition<A, E>,
): EnvironmentLoader<A> {
  const declared = definition.needs ?? [];
  const load = async (given: unknown): Promise<AnyEnvironment> => {
    const args = checkWithin(() => definition.args.parse(given ?? {}));
    const environment = await definition.build(args);
    // Authors are not always typed.
    if (typeof environment?.route !== "function") {
      throw new TypeError("build must return an environment: a SingleTurnEnv, MultiTurnEnv, ToolEnv or EnvGroup");
    }
    const needs = typeof declared === "function" ? declared(args) : declared;
    // What a group's members need, whoever runs the group must be told.
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
