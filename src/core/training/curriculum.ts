/**
 * Which task a group takes.
 *
 * Invariants. The choice follows from the curriculum, the seed, the group's number and what finished groups scored, so
 * a run that is taken up again goes on as it would have. The state is JSON; noting the finished groups in the order
 * they finished makes it anew.
 */
import { seededRandom } from "../../contract/random.ts";
import type { Curriculum } from "../../contract/training-request.ts";

const POOLS = ["hard", "normal", "easy"] as const;
type Pool = (typeof POOLS)[number];

/** Examples by the latest mean reward of a group of theirs; what is in none has not been seen. */
export type CurriculumState = Readonly<Record<Pool, readonly number[]>>;

export interface TaskChoice {
  readonly curriculum: Curriculum;
  /** Rows of the dataset; null where it is generated without end. */
  readonly rows: number | null;
  readonly seed: number;
}

type Difficulty = Extract<Curriculum, { name: "difficulty" }>;

export class TaskPicker {
  readonly #choice: TaskChoice;
  readonly #pools: Record<Pool, number[]>;
  /** Where each seen example is. */
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

  /** The row, from 0, that the group with this number takes. */
  example(group: number): number {
    const { curriculum } = this.#choice;
    return curriculum.name === "cycle" ? this.#inTurn(group) : this.#draw(curriculum, group);
  }

  /** A whole group of this example was scored. */
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

  /** Each example weighs what its pool says; drawn with replacement. */
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

  /** How many there are to draw from. Of those without end: as many as have been seen, so that both have a part. */
  #unseen(): number {
    const { rows } = this.#choice;
    return rows === null ? Math.max(1, this.#places.size) : Math.max(0, rows - this.#places.size);
  }

  /** In turn from the group's own on, so that groups which are open together take different ones. */
  #nextUnseen(group: number): number {
    const first = this.#inTurn(group);
    for (let example = first; this.#unseen() > 0; example = this.#inTurn(example + 1)) {
      if (!this.#places.has(example)) return example;
    }
    return first;
  }

  /** The last of the pool goes where it was. */
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
