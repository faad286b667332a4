/** Constant references of a grader are checked when the grader is parsed. */
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

test.each([
  ["regex", "(", "is not an RE2 pattern"],
  ["regex", "(?=x)", "is not an RE2 pattern"],
  ["numeric", "four", "is not a number"],
  ["json_schema", "[]", "a JSON Schema must be an object"],
  ["math", "\\frac{1}{", "the target cannot be read"],
])("a constant reference of %s that nothing can be compared with is refused: %j", async (scorer, reference, why) => {
  const grader = { type: "scorer", name: "n", scorer, reference };
  const refused = loadEnvironment.args.safeParse({ graders: [grader] }).error?.issues ?? [];
  expect(refused.map(({ path }) => path.join("."))).toEqual(["graders.0.reference"]);
  expect(refused[0]?.message).toContain(why);
  // A reference from a row is only known when the row is scored.
  await loadEnvironment.load({ graders: [{ ...grader, reference: "{{item.answer}}" }] });
});
