/** Which fleets several training runs may have at once. */
import { expect, test } from "vitest";
import { FleetUpdate, UPDATE_MODES } from "../../src/contract/fleet.ts";
import { sharesWeights } from "../../src/fleets/place.ts";

test("training runs share a fleet only where their weights go by names of their own", () => {
  const shared = UPDATE_MODES.filter((mode) => sharesWeights(FleetUpdate.parse({ mode })));
  expect(shared).toEqual(["lora_versioned"]);
});
