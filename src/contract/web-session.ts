/** Signing in to the web page: one-time codes, and the sessions that they or keys become. Said once, kept as hashes. */
import * as z from "zod";
import { EXAMPLE, listOf, MaybeText, NonEmpty, named, Seconds } from "./primitives.ts";

const Secret = NonEmpty.max(200);

/** What `rollcall view` opens: the code stands behind the `#` of the link, which browsers send to nobody. */
export const SignInCode = named("SignInCode", {
  object: z.literal("sign_in_code"),
  code: z.string().describe("good once, said here only").meta({ example: EXAMPLE.signInCode }),
  url: z
    .string()
    .describe("opens the page and signs in; `&to=/runs/…` at its end names the page that follows")
    .meta({ example: `https://rollcall.example/sign-in#code=${EXAMPLE.signInCode}` }),
  expires_at: Seconds,
});
export type SignInCode = z.infer<typeof SignInCode>;

/** A browser signs in with one of the two. */
export const SessionRequest = z
  .strictObject({
    code: Secret.optional().describe("a one-time code").meta({ example: EXAMPLE.signInCode }),
    key: Secret.optional().describe("an API key, in the place of a code"),
  })
  .refine(({ code, key }) => (code === undefined) !== (key === undefined), { error: "give a code or a key" })
  .meta({ id: "SessionRequest", example: { code: EXAMPLE.signInCode } });
export type SessionRequest = z.output<typeof SessionRequest>;

export const SessionView = named("Session", {
  object: z.literal("session"),
  id: z.string().meta({ example: EXAMPLE.session }),
  key_id: MaybeText.describe("the key it was begun with, whose scopes it has").meta({ example: EXAMPLE.key }),
  person_id: MaybeText.describe("or the person, signed in by Cloudflare Access"),
  project_id: MaybeText.describe("of a key for one project; null: any of the organisation").meta({
    example: EXAMPLE.project,
  }),
  created_at: Seconds,
  expires_at: Seconds,
});
export type SessionView = z.infer<typeof SessionView>;
export const SessionList = listOf(SessionView, "SessionList", EXAMPLE.session);
