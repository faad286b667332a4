import { expect, test } from "vitest";
import { builtEnvironment, findEnvironment, isBuilt } from "../../../src/kernel/environment/environments.ts";

const scope = { orgId: "org_instances", projectId: "pj_1" };

test("projects never share an instance of an environment, whatever its arguments; the runs of one project do", async () => {
  const registered = findEnvironment("reverse-text");
  if (registered === null) throw new Error("reverse-text is not registered");
  const own = await builtEnvironment(scope, registered, {});
  expect(await builtEnvironment(scope, registered, {})).toBe(own);
  for (const other of [{ ...scope, projectId: "pj_2" }, { ...scope, orgId: "org_other" }, null]) {
    expect(await builtEnvironment(other, registered, {})).not.toBe(own);
  }
  expect(isBuilt({ ...scope, projectId: "pj_3" }, registered, {})).toBe(false);
});
