/** Jobs that delete a run, a project or an organisation with everything in it. */
import type { DeletionView } from "../contract/deletion.ts";
import { Readable } from "./resource.ts";

export class Deletions extends Readable<DeletionView> {
  protected readonly path = "/deletions";
}
