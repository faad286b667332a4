/** Which fleets several training runs may use at the same time. */
import { expect, test } from "vitest";
import { FleetUpdate, UPDATE_MODES } from "../../src/contract/fleet.ts";
import { sharesWeights } from "../../src/fleets/place.ts";

test("training runs share a fleet only if their weights have their own names", () => {
  const shared = UPDATE_MODES.filter((mode) => sharesWeights(FleetUpdate.parse({ mode })));
  expect(shared).toEqual(["lora_versioned"]);
});
