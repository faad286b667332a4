/**
 * Parts that several schemas of the wire share, and the format of numbers in a query, a path or a header. A number has
 * one spelling: others that JavaScript would also parse (`0x10`, ` 10`, `+5`, for a whole number also `1e2`) are
 * refused, since the sender probably meant something else.
 */
import * as z from "zod";

/** Values that the examples of several schemas share: one run of one task, and its first rollout. */
export const EXAMPLE = {
  run: "run_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq",
  rollout: "ro_01ks2h9q4e7mxw3f0tbn8vc5za_0_0_0_h3v6t2wd",
  baseline: "run_01ks2h9q4e7mxw3f0tbn8vc5zd4w8k2hjr",
  endpoint: "ep_01ks2h9q4e7mxw3f0tbn8vc5zb5r2j6wqd",
  fleet: "fl_01ks2h9q4e7mxw3f0tbn8vc5znt5k2w7xc",
  replica: "rp_01ks2h9q4e7mxw3f0tbn8vc5zpv3m8q4rd",
  trigger: "tr_01ks2h9q4e7mxw3f0tbn8vc5zqw7h5t2be",
  webhook: "whe_01ks2h9q4e7mxw3f0tbn8vc5zrx2n6k9sf",
  delivery: "msg_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq_41_01ks2h9q4e7mxw3f0tbn8vc5zrx2n6k9sf",
  secret: "sec_01ks2h9q4e7mxw3f0tbn8vc5zc6t3k7xre",
  dataset: "ds_01ks2h9q4e7mxw3f0tbn8vc5zcq4m7rt2d",
  upload: "up_01ks2h9q4e7mxw3f0tbn8vc5zvn6t2r9hd",
  deletion: "del_01ks2h9q4e7mxw3f0tbn8vc5ze8h2n5kvt",
  budget: "bud_01ks2h9q4e7mxw3f0tbn8vc5zmr3w6t2gd",
  lease: "ls_01ks2h9q4e7mxw3f0tbn8vc5za_1_w7c3nq2e",
  organization: "org_01ks2h9q4e7mxw3f0tbn8vc5zfh4s2nq7b",
  project: "pj_01ks2h9q4e7mxw3f0tbn8vc5zg3kd6wmy5",
  key: "key_01ks2h9q4e7mxw3f0tbn8vc5zhq7f2tzca",
  person: "per_01ks2h9q4e7mxw3f0tbn8vc5zjb5v4xre2",
  session: "ses_01ks2h9q4e7mxw3f0tbn8vc5zsw2m4k7td",
  reportLink: "rl_01ks2h9q4e7mxw3f0tbn8vc5ztx3p6n2vh",
  review: "rev_01ks2h9q4e7mxw3f0tbn8vc5zyb6m2k4wq",
  invitation: "inv_01ks2h9q4e7mxw3f0tbn8vc5zkd3h6pws4",
  token: "rk_7m2q4vbn8c0tz5xw3fhd6ks9g1yr2jpe7ma4q8wx9d4",
  invitationToken: "rki_3hd6ks9g1yr2jpe7ma4q8vbn8c0tz5xw37m2q4vbn",
  signInCode: "rkc_8vbn8c0tz5xw37m2q4fhd6ks9g1yr2jpe7ma4q8wx9d4",
  reportToken: "rkr_tz5xw37m2q4fhd6ks9g18vbn8c0yr2jpe7ma4q8wx9d4",
  batch: "bat_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq_0_1",
  batch_sha256: "e5a01fee14e0ed5c48714f22180f25ad8365b53f9779f79dc4a3d7e93963f94a",
  task: "2c26b46b68ffc68ff99b453c1d304134",
  row: { question: "Tom has 3 apples and buys 4. How many has he?", answer: "#### 7" },
  prompt: [{ role: "user", content: "Tom has 3 apples and buys 4. How many has he?" }],
  completion: { role: "assistant", content: "3 + 4 = 7, so \\boxed{7}." },
};

export const Count = z.int().nonnegative();
export const CountsByName = z.record(z.string(), Count);
export const Seconds = z.int().describe("seconds since the epoch").meta({ example: 1_792_000_000 });
export const Positive = z.int().min(1);
/** A step of a training run, from 1. */
export const Step = z.int().min(1);
/** A version of the policy's weights, from 0. */
export const Version = z.int().nonnegative();
export const Share = z.number().min(0).max(1);
export const NonEmpty = z.string().min(1);
export const MaybeNumber = z.number().nullable();
export const MaybeFlag = z.boolean().nullable();
export const MaybeText = z.string().nullable();
export const Interval = z.tuple([z.number(), z.number()]).nullable();
export const RunId = z.string().meta({ example: EXAMPLE.run });
export const RolloutId = z.string().meta({ example: EXAMPLE.rollout });
export const TaskKey = z.string().meta({ example: EXAMPLE.task });
/** The text by which people recognise a task. Rollouts that ended before this field existed have none. */
export const TaskText = MaybeText.describe(
  "the task in short: the last user message of its prompt, on one line of at most 120 characters; null if it is unknown or has no text",
).meta({ example: EXAMPLE.row.question });
/** The versions of the weights that replicas serve: the oldest, the newest, and that of each replica. */
export const Applied = z.object({ min: Version, max: Version, by_replica: z.record(z.string(), Version) });
/** An object with any members. */
export const AnyObject = z.record(z.string(), z.unknown());
/** The same with a maximal length as JSON, in characters. `otherwise`: the advice for a longer object. */
export function shortObject(characters: number, otherwise: string) {
  const error = `must be at most ${characters} characters of JSON: ${otherwise}`;
  return AnyObject.refine((value) => JSON.stringify(value).length <= characters, { error });
}
/** The build of an environment. */
export const BuiltEnvironment = z.object({
  id: z.string().meta({ example: "gsm8k" }),
  version: z.string().meta({ example: "1.0.0" }),
  digest: z.string().meta({ example: "sha256:9f86d081884c7d65" }),
});

const WHOLE = /^(0|[1-9]\d*)$/;
/** A number in JSON's spelling. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

export function wholeNumber(least: number, most?: number) {
  const range = most === undefined ? ` of at least ${least}` : ` from ${least} to ${most}`;
  const number = z.int({ error: `must be a whole number${range}, in digits` }).min(least);
  return z.preprocess((text) => read(text, WHOLE), most === undefined ? number : number.max(most));
}

/** Maximal number of objects on a page of a list. */
export const PageLimit = wholeNumber(1, 100).default(20);

export const PlainNumber = z.preprocess((text) => read(text, NUMBER), z.number({ error: "must be a number" }));

/** A boolean in a query, as text. */
export const Flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");

function read(text: unknown, form: RegExp): unknown {
  return typeof text === "string" && form.test(text) ? Number(text) : text;
}

/** An object schema with a name in the OpenAPI document. */
export function named<Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) {
  return z.object(shape).meta({ id });
}

/** The same for requests: unknown members are refused. */
export function namedInput<Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) {
  return z.strictObject(shape).meta({ id });
}

/**
 * The envelope of every list of the API, as in OpenAI's: the cursor of the next page is `last_id`. `cursor`: an example
 * of one.
 */
export function listOf<Item extends z.ZodType>(item: Item, id: string, cursor: string) {
  return z
    .object({
      object: z.literal("list"),
      data: z.array(item).meta({ example: [{}] }),
      first_id: MaybeText.meta({ example: cursor }),
      last_id: MaybeText.meta({ example: cursor }),
      has_more: z.boolean(),
    })
    .meta({ id });
}
