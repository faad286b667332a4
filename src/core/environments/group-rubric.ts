/**
 * The rubrics of several environments as one. A function scores the rows of its own environment, and gives 0 for those of
 * every other: so a row has its environment's reward, and all metrics.
 */
import { type AnyRubric, Rubric, type ScoreFunction } from "../rubrics/rubric.ts";
import { RubricGroup } from "../rubrics/rubric-group.ts";
import type { AnyEnvironment } from "./any-environment.ts";
import type { Cleanup, GroupArgs, RewardArgs, RoutedRow, ScoringArgs, TaskRow } from "./contract.ts";
import { takeRoute } from "./group-route.ts";

type Args = RewardArgs<unknown, unknown>;
type State = Args["state"];
/** The state as one environment knows it; null for a row of another. */
type OwnState = (state: State) => State | null;

export function groupRubric(environments: ReadonlyMap<string, AnyEnvironment>): RubricGroup {
  const rubrics = [...environments].flatMap(([name, { rubric }]) => {
    const own = ownStates(environments, name);
    return rubric.rubrics.map((each) => new MemberRubric(each, own));
  });
  return new RubricGroup(rubrics);
}

class MemberRubric extends Rubric {
  readonly #rubric: AnyRubric;
  readonly #own: OwnState;

  constructor(rubric: AnyRubric, own: OwnState) {
    const { parser, judges } = rubric;
    super({ ...(parser && { parser }), judges, cleanup: ownCleanup(rubric, own) });
    this.#rubric = rubric;
    this.#own = own;
  }

  override get functions(): readonly ScoreFunction[] {
    return [...this.#rubric.functions.map((fn) => this.#ofMember(fn)), ...super.functions];
  }

  override get objects(): Readonly<Record<string, unknown>> {
    return { ...this.#rubric.objects, ...super.objects };
  }

  override async provided(args: ScoringArgs<unknown, unknown>) {
    const own = ownArgs(args, this.#own);
    const provided = own === null ? {} : await this.#rubric.provided(own);
    return { ...provided, ...(await super.provided(args)) };
  }

  #ofMember(fn: ScoreFunction): ScoreFunction {
    const { name, weight } = fn;
    if (!fn.group) {
      const score = (args: Args) => {
        const own = ownArgs(args, this.#own);
        return own === null ? 0 : fn.score(own);
      };
      return { name, weight, group: false, score };
    }
    // All members of a unit are rollouts of one row.
    const score = (group: readonly Args[], shared: GroupArgs) => {
      const own = group.map((args) => ownArgs(args, this.#own)).filter((args) => args !== null);
      return own.length === 0 ? group.map(() => 0) : fn.score(own, shared);
    };
    return { name, weight, group: true, score };
  }
}

function ownArgs<A extends ScoringArgs<unknown, unknown>>(args: A, own: OwnState): A | null {
  const state = own(args.state);
  if (state === null) return null;
  return { ...args, state, task: state.task, info: state.info };
}

function ownCleanup({ cleanupHandlers }: AnyRubric, own: OwnState): Readonly<Record<string, Cleanup<State>>> {
  const handlers = cleanupHandlers.map(({ name, priority, run }) => {
    const ofMember = async (state: State) => {
      const inner = own(state);
      if (inner !== null) await run(inner);
    };
    return [name, { priority, run: ofMember }] as const;
  });
  return Object.fromEntries(handlers);
}

/** One inner state for each, so that a function reads what another wrote. */
function ownStates(members: ReadonlyMap<string, AnyEnvironment>, name: string): OwnState {
  const known = new WeakMap<object, State | null>();
  return (state) => {
    const made = known.get(state);
    if (made !== undefined) return made;
    const row = ownRow(members, name, state);
    const own = row === null ? null : { ...state, ...row };
    known.set(state, own);
    return own;
  };
}

function ownRow(members: ReadonlyMap<string, AnyEnvironment>, name: string, { task, info }: State): RoutedRow | null {
  try {
    const taken = takeRoute(members, { task: task as TaskRow, info });
    return taken.name === name ? taken.inner : null;
  } catch (thrown) {
    // A row that is nobody's scores 0 throughout.
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}
