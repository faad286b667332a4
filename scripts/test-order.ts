/**
 * The order in which a test run takes its files. Files that start processes take longest, mostly waiting. They come
 * first, so that the many short files run at the same time. In each runtime the longest files come first of all, so
 * that none runs alone at the end.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** These are small files, so the test runner expects them to be short. */
const LONGEST = [
  /\/test\/faults\/faults\.test/,
  /\/test\/local\/(poisoned|isolated-poison|ending-code|kill|own-environment|serve-watch|training\/training)\.test/,
  /\/test\/cli\/(newcomer|commands-doc|reading|env-init|stopping)\.test/,
];
const LONGEST_IN_WORKERD = [
  /\/test\/kernel\/http\/authorization\.test/,
  /\/test\/kernel\/run\/(judging\/faults|training\/holdout-runs)\.test/,
  /\/test\/billing\/(month|settling)\.test/,
  /\/test\/kernel\/(endpoint\/object|account\/object)\.test/,
  /\/test\/kernel\/rollout\/(cut-off|model-faults|shared-objects|fault-classes)\.test/,
];
const STARTS_PROCESSES = /\/test\/(faults|local|cli)\//;

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => this.#placeOf(a) - this.#placeOf(b));
  }

  #placeOf({ moduleId, project }: TestSpecification): number {
    const isAmong = (names: readonly RegExp[]) => names.some((name) => name.test(moduleId));
    if (project.name !== "node") return isAmong(LONGEST_IN_WORKERD) ? 3 : 4;
    if (isAmong(LONGEST)) return 0;
    return STARTS_PROCESSES.test(moduleId) ? 1 : 2;
  }
}
