/** The Worker with a door for trajectories that nobody can wait for, as a platform is to be booted with it. */
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

export const PLANTING = {
  entry: join(ROOT, "test/web/planting-fixture.ts"),
  folder: join(ROOT, "dist", "planting"),
};
