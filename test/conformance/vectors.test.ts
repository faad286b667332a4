import { describe, expect, inject, test } from "vitest";
import { DRIVERS } from "./drivers.ts";
import { faultOf } from "./run-vectors.ts";
import { faultsOf } from "./vector-file.ts";

const file = inject("vectors");

describe("recorded behaviours of verifiers", () => {
  test("the file's counts are right, and every kind has a driver", () => {
    expect(faultsOf(file, new Set(DRIVERS.keys()))).toEqual([]);
  });

  test.each(file.vectors.map((vector) => ({ name: `${vector.kind} ${vector.id}`, vector })))(
    "$name",
    async ({ vector }) => {
      expect(await faultOf(vector)).toBeNull();
    },
  );
});
