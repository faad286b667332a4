/** The projects that the key may access; by id or name. */
import type { ProjectPatch, ProjectRequestInput, ProjectView } from "../accounts/wire.ts";
import type { DeletionView } from "../contract/deletion.ts";
import { Editable } from "./resource.ts";

/**
 * `update` changes only the fields that are given, also within `retention`. `delete` starts a job that deletes the
 * project and everything in it; it needs a key of the whole organisation.
 */
export class Projects extends Editable<ProjectView, ProjectRequestInput, ProjectPatch, ProjectView, DeletionView> {
  protected readonly path = "/projects";
}
