/** What the models of one simulation share: the clock, the counts, the queues, and the kind of work. */
import { SHARDS } from "../../src/core/run-queues.ts";
import { Agenda } from "./agenda.ts";
import { LATENCY_MS, type Latency } from "./policies.ts";
import { QueuesModel } from "./queue-model.ts";
import { SettingsModel } from "./settings-model.ts";
import { Traffic } from "./traffic.ts";

/** What the rollouts of a case are. */
export interface Work {
  readonly turns: number;
  /** The milliseconds of the next turn. */
  readonly turnMs: () => number;
  /** Calls `answered` when the model has answered a turn that begins now; absent: after `turnMs`. */
  readonly answer?: (agenda: Agenda, answered: () => void) => void;
  readonly callTimeoutMs: number;
  /** How many rollouts share an object at a time. */
  readonly perShard: number;
  /** The size of a trajectory; above `LIMITS.inlineTrajectoryBytes` it is an object of R2. */
  readonly trajectoryBytes: number;
  /** A client follows the events of each run. */
  readonly followed: boolean;
  /**
   * How many objects that play rollouts share an isolate, and with it what it keeps of D1. So many start messages of a
   * run share one, too, and with it the rows of the dataset.
   */
  readonly objectsPerIsolate: number;
  /** Absent: as assumed inside Cloudflare. */
  readonly latency?: Latency;
}

/** Lease functions treat 0 as "never". */
const START_MS = 1_800_000_000_000;

export class World {
  readonly agenda = new Agenda(START_MS);
  readonly traffic: Traffic;
  readonly work: Work;
  readonly latency: Latency;
  readonly groups: QueuesModel;
  readonly scores: QueuesModel;
  readonly segments: QueuesModel;
  readonly from: number;
  /** Turns that began since `from`. */
  turns = 0;
  #isolate: { readonly settings: SettingsModel; objects: number } | null = null;
  #ids = 0;

  /** `warmUpMs`: counts begin after this time. */
  constructor(work: Work, warmUpMs: number) {
    this.work = work;
    this.latency = work.latency ?? LATENCY_MS;
    this.from = START_MS + warmUpMs;
    this.traffic = new Traffic(this.from);
    this.groups = new QueuesModel("rollout-groups", SHARDS, this);
    this.scores = new QueuesModel("rollout-scores", SHARDS, this);
    this.segments = new QueuesModel("run-segments", 1, this);
  }

  get queues(): readonly QueuesModel[] {
    return [this.groups, this.scores, this.segments];
  }

  /** Ids sort by time, as those of runs do. */
  nextId(): string {
    this.#ids += 1;
    return `run_${String(this.#ids).padStart(9, "0")}`;
  }

  /** What the isolate of a new object keeps. */
  joinIsolate(): SettingsModel {
    let last = this.#isolate;
    if (last === null || last.objects === this.work.objectsPerIsolate) {
      last = { settings: new SettingsModel(this.agenda, this.traffic), objects: 0 };
      this.#isolate = last;
    }
    last.objects += 1;
    return last.settings;
  }
}
