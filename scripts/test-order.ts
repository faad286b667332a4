/**
 * The order in which a run of the tests takes its files. Those that start processes take longest, for as long as they
 * wait for them: they come first, so that the many short ones fill the time beside them. In each runtime the longest of
 * all come before the others, so that none is left alone at the end.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They are small files: to the test runner they look short. */
const LONGEST = [
  /\/test\/faults\/faults\.test/,
  /\/test\/local\/(poisoned|ending-code|kill|own-environment|serve-watch|training\/training)\.test/,
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
