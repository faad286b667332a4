import { expect, test } from "vitest";
import { staleEdit } from "../mutate/copied-tree.ts";
import { EDITS } from "../mutate/edits.ts";

test("every edit of the mutation tester still matches its file", () => {
  expect(staleEdit(EDITS)).toBeNull();
});
