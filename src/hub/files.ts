/**
 * Where the files of published versions are. Those of a private environment are deleted with its project, those of an
 * organisation with it. Public ones stay, so they are below the folder of the platform.
 */
import { folderOf } from "../kernel/kit/names.ts";
import type { HubEnvironmentRow } from "./tables.ts";

type Place = Pick<HubEnvironmentRow, "org_id" | "project_id" | "visibility" | "kind">;

/** Keys in R2 of the files of one version. They never change. */
export function filesOf({ org_id: orgId, project_id: projectId, visibility, kind }: Place, versionId: string) {
  const folder = `${folderFor(orgId, projectId, visibility)}hub/${versionId}/`;
  return {
    package: `${folder}${kind === "python" ? "package.whl" : "package.tgz"}`,
    code: `${folder}environment.js`,
    metadata: `${folder}METADATA`,
    readme: `${folder}README.md`,
  };
}

function folderFor(orgId: string, projectId: string | null, visibility: Place["visibility"]): string {
  if (visibility === "public") return "org/platform/";
  return projectId === null ? `org/${orgId}/` : folderOf({ orgId, projectId });
}
