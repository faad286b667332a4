/** The functions behind the accounts routes. */
import { changeApiKey, createApiKey, revokeKey, rotateKey } from "./api-keys.ts";
import { bootstrap, changeLimits, changeOrganization, createOrganization } from "./organizations.ts";
import { acceptInvitation, changePerson, createInvitation, removePerson, takeBackInvitation } from "./people.ts";
import { changeProject, createProject } from "./projects.ts";
import { createSignInCode, openSession, ownerOfCode } from "./sign-in.ts";

export const accountsService = {
  bootstrap,
  createOrganization,
  changeLimits,
  changeOrganization,
  createProject,
  changeProject,
  createApiKey,
  rotateKey,
  changeApiKey,
  revokeKey,
  createSignInCode,
  ownerOfCode,
  openSession,
  createInvitation,
  acceptInvitation,
  takeBackInvitation,
  changePerson,
  removePerson,
};
export type AccountsService = typeof accountsService;
