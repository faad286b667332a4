/**
 * Reads turns of a stored trajectory by number, without the rest of it. A trajectory that is in memory as a text or
 * object is used directly. For one in R2 the positions of its turns are found once; then one ranged get reads only what
 * is needed.
 */
import type { StoredTurn, Trajectory } from "../../contract/trajectory.ts";
import { utf8Bytes } from "../../core/size.ts";
import { LruCache } from "../kit/caches.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { REST, rangeOf, type TrajectoryRest, type TurnSlice, type TurnsAsk } from "../messages/turn-wire.ts";
import { type ByteRange, locateTurns, type TurnPlaces } from "./locate-turns.ts";

export interface TurnReader {
  readonly total: number;
  page(ask: TurnsAsk): Promise<TurnSlice>;
  initialState(): Promise<Trajectory["initial_state"]>;
  rest(): Promise<TrajectoryRest>;
}

export function readerOf(trajectory: Trajectory): TurnReader {
  const { turns, started_at } = trajectory;
  const total = turns.length;
  const bytesOf = (turn: StoredTurn | undefined) => utf8Bytes(JSON.stringify(turn ?? null));
  return {
    total,
    page: async (ask) => {
      const range = rangeOf(total, ask, (index) => bytesOf(turns[index]));
      const found = turns.slice(range.from, range.to);
      return { total, started_at, ...range, turns: found, bytes: found.map(bytesOf) };
    },
    initialState: async () => trajectory.initial_state,
    rest: async () => trajectory,
  };
}

interface Located extends TurnPlaces {
  readonly started_at: number;
}

/** By R2 key (which begins with the owner's) and rollout: at most about 40,000 turns each, 4 bytes per turn. */
const located = new LruCache<Located>(64);

export interface TrajectoryPlace {
  /** Key of the R2 object: a segment, or the rollout's own. */
  readonly key: string;
  readonly rollout_id: string;
  readonly in_segment: boolean;
}

/** Null if the rollout has no trajectory. Throws `TrajectoryMoved` if the object does not exist any more. */
export async function openReader(
  env: Env,
  { key, rollout_id, in_segment }: TrajectoryPlace,
  subrequests: Subrequests,
): Promise<TurnReader | null> {
  const name = `${key}#${rollout_id}`;
  const known = located.get(name);
  if (known !== undefined) return new StoredReader(env, key, known, subrequests);
  const places = await subrequests.inTurn(async () => {
    const object = await env.STORE.get(key);
    if (object === null) throw new TrajectoryMoved(key);
    const before = in_segment ? `{"rollout_id":${JSON.stringify(rollout_id)},"trajectory":` : "";
    return await locateTurns(object.body, before);
  });
  if (places === "empty") return null;
  if (places === "missing") throw new Error(`${key} does not hold the trajectory of ${rollout_id}`);
  const reader = new StoredReader(env, key, { ...places, started_at: 0 }, subrequests);
  const { started_at } = await reader.members(["started_at"]);
  const found = { ...places, started_at: started_at ?? 0 };
  located.set(name, found);
  return new StoredReader(env, key, found, subrequests);
}

class StoredReader implements TurnReader {
  readonly total: number;
  readonly #startedAt: number;
  readonly #env: Env;
  readonly #key: string;
  readonly #places: TurnPlaces;
  readonly #subrequests: Subrequests;

  constructor(env: Env, key: string, places: Located, subrequests: Subrequests) {
    this.#env = env;
    this.#key = key;
    this.#places = places;
    this.#subrequests = subrequests;
    this.total = Math.max(0, places.starts.length - 1);
    this.#startedAt = places.started_at;
  }

  async page(ask: TurnsAsk): Promise<TurnSlice> {
    const { total } = this;
    const { from, to, more } = rangeOf(total, ask, (index) => this.#bytesOf(index));
    const turns = await this.#turns(from, to);
    const bytes = turns.map((_, at) => this.#bytesOf(from + at));
    return { total, started_at: this.#startedAt, from, to, more, turns, bytes };
  }

  #bytesOf(index: number): number {
    const { starts } = this.#places;
    return (starts[index + 1] ?? 0) - (starts[index] ?? 0);
  }

  async #turns(from: number, to: number): Promise<StoredTurn[]> {
    const { starts } = this.#places;
    const [first, end] = [starts[from], starts[Math.min(to, this.total)]];
    if (from >= to || first === undefined || end === undefined || end <= first) return [];
    const text = await this.#text({ from: first, to: end - 1 });
    return JSON.parse(`[${text}]`) as StoredTurn[];
  }

  async initialState(): Promise<Trajectory["initial_state"]> {
    const { initial_state } = await this.members(["initial_state"]);
    return initial_state ?? {};
  }

  async rest(): Promise<TrajectoryRest> {
    return (await this.members(REST)) as TrajectoryRest;
  }

  /** Adjacent members are read together. */
  async members<Name extends keyof Trajectory>(names: readonly Name[]): Promise<Partial<Pick<Trajectory, Name>>> {
    const ranges = names.flatMap((name) => this.#places.members.get(name) ?? []);
    ranges.sort((a, b) => a.from - b.from);
    const joined: { from: number; to: number }[] = [];
    for (const { from, to } of ranges) {
      const last = joined.at(-1);
      if (last !== undefined && last.to + 1 === from) last.to = to;
      else joined.push({ from, to });
    }
    const texts = await this.#subrequests.six(joined, (range) => this.#text(range));
    return JSON.parse(`{${texts.join(",")}}`) as Partial<Pick<Trajectory, Name>>;
  }

  async #text({ from, to }: ByteRange): Promise<string> {
    const range = { offset: from, length: to - from };
    const text = await this.#subrequests.inTurn(async () => {
      const object = await this.#env.STORE.get(this.#key, { range });
      return object === null ? null : await object.text();
    });
    if (text === null) throw new TrajectoryMoved(this.#key);
    return text;
  }
}

/** The object was compacted into a segment, or deleted, after its positions were found. */
export class TrajectoryMoved extends Error {
  override readonly name = "TrajectoryMoved";

  constructor(key: string) {
    super(`${key} no longer exists`);
  }
}
