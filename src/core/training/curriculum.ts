/**
 * Chooses the task of each group.
 *
 * Invariants. The choice depends only on the curriculum, the seed, the group's number and the scores of finished
 * groups, so a resumed run chooses the same tasks. The state is JSON; it can be rebuilt by noting the finished groups
 * in the order in which they finished.
 */
import { seededRandom } from "../../contract/random.ts";
import type { Curriculum } from "../../contract/training-request.ts";

const POOLS = ["hard", "normal", "easy"] as const;
type Pool = (typeof POOLS)[number];

/** Examples by pool, according to the latest mean reward of their groups; an example in no pool has not been seen. */
export type CurriculumState = Readonly<Record<Pool, readonly number[]>>;

export interface TaskChoice {
  readonly curriculum: Curriculum;
  /** Number of rows of the dataset; null if it is endless. */
  readonly rows: number | null;
  readonly seed: number | string;
}

type Difficulty = Extract<Curriculum, { name: "difficulty" }>;

export class TaskPicker {
  readonly #choice: TaskChoice;
  readonly #pools: Record<Pool, number[]>;
  /** The pool and index of each seen example. */
  readonly #places = new Map<number, { pool: Pool; at: number }>();

  constructor(choice: TaskChoice, state: CurriculumState = { hard: [], normal: [], easy: [] }) {
    this.#choice = choice;
    this.#pools = { hard: [...state.hard], normal: [...state.normal], easy: [...state.easy] };
    for (const pool of POOLS) {
      for (const [at, example] of this.#pools[pool].entries()) {
        this.#places.set(example, { pool, at });
      }
    }
  }

  /** The row, from 0, of the group with this number. */
  example(group: number): number {
    const { curriculum } = this.#choice;
    return curriculum.name === "cycle" ? this.#inTurn(group) : this.#draw(curriculum, group);
  }

  /** Notes that a whole group of this example was scored. */
  note(example: number, meanReward: number): void {
    const { curriculum } = this.#choice;
    if (curriculum.name === "cycle") return;
    const pool = poolOf(curriculum, meanReward);
    const place = this.#places.get(example);
    if (place?.pool === pool) return;
    if (place !== undefined) this.#take(place);
    this.#places.set(example, { pool, at: this.#pools[pool].push(example) - 1 });
  }

  toJSON(): CurriculumState {
    return this.#pools;
  }

  #inTurn(group: number): number {
    const { rows } = this.#choice;
    return rows === null ? group : group % rows;
  }

  /** Draws an example with replacement; each has the weight of its pool. */
  #draw(curriculum: Difficulty, group: number): number {
    const random = seededRandom("curriculum", this.#choice.seed, group);
    const weighed = POOLS.map((pool) => ({
      examples: this.#pools[pool],
      weight: this.#pools[pool].length * curriculum[pool].weight,
    }));
    const unseen = this.#unseen() * curriculum.unseen.weight;
    let left = random() * (unseen + weighed.reduce((sum, { weight }) => sum + weight, 0));
    for (const { examples, weight } of weighed) {
      const example = examples[Math.floor(random() * examples.length)];
      if (example !== undefined && left < weight) return example;
      left -= weight;
    }
    return this.#nextUnseen(group);
  }

  /** Number of unseen examples to draw from. For an endless dataset as many as seen, so that both are drawn. */
  #unseen(): number {
    const { rows } = this.#choice;
    return rows === null ? Math.max(1, this.#places.size) : Math.max(0, rows - this.#places.size);
  }

  /** The first unseen example from the group's own place on: groups that are open together take different ones. */
  #nextUnseen(group: number): number {
    const first = this.#inTurn(group);
    for (let example = first; this.#unseen() > 0; example = this.#inTurn(example + 1)) {
      if (!this.#places.has(example)) return example;
    }
    return first;
  }

  /** Removes an example: the last one of the pool moves to its place. */
  #take({ pool, at }: { pool: Pool; at: number }): void {
    const examples = this.#pools[pool];
    const last = examples.pop();
    if (last === undefined || at === examples.length) return;
    examples[at] = last;
    this.#places.set(last, { pool, at });
  }
}

function poolOf({ hard, normal }: Difficulty, meanReward: number): Pool {
  if (meanReward <= hard.up_to) return "hard";
  return meanReward <= normal.up_to ? "normal" : "easy";
}
