/**
 * The order in which a run of the tests takes its files. Those that start processes take longest, for as long as they
 * wait for them: they come first, so that the many short ones fill the time beside them and none is left alone at the
 * end.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The longest of all, which are small files: to the test runner they look short. */
const LONGEST =
  /test\/(faults\/faults|local\/(poisoned|ending-code|kill|own-environment|serve-watch)|cli\/newcomer)\.test/;
const STARTS_PROCESSES = /\/test\/(faults|local|cli)\//;

export default class ProcessesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => this.#placeOf(a) - this.#placeOf(b));
  }

  #placeOf({ moduleId, project }: TestSpecification): number {
    if (project.name !== "node") return 3;
    if (LONGEST.test(moduleId)) return 0;
    return STARTS_PROCESSES.test(moduleId) ? 1 : 2;
  }
}
