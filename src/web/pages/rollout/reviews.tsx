/** What people think of the rollout, and a form for the reader's own review. The rollout itself never changes. */
import { useQuery } from "@tanstack/react-query";
import type { RefObject } from "react";
import { MARKS } from "../../../contract/agreement.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { RolloutHead } from "../../../contract/turns.ts";
import type { ReviewRequestInput, ReviewView } from "../../../sdk/client.ts";
import { api } from "../../client.ts";
import { ActionButton } from "../../components/action-button.tsx";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Field, Form, numberOf, TextField, textOf } from "../../components/form.tsx";
import { timeText } from "../../components/format.ts";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { useKeys } from "../../layout/keys.tsx";
import { useMay, useSession } from "../../layout/session.tsx";

export const TONES = { good: "good", bad: "bad", unsure: "warn" } as const;

export function useReviews(id: string) {
  return useQuery({
    queryKey: ["reviews", id],
    queryFn: ({ signal }) => api.reviews.list(id, { limit: LIMITS.reviewsPerRollout, order: "asc" }, { signal }),
  });
}

interface ReviewsProps {
  readonly head: RolloutHead;
  /** The first field of the form, to give it the focus. */
  readonly form: RefObject<HTMLSelectElement | null>;
}

export function Reviews({ head, form }: ReviewsProps) {
  const mayWrite = useMay("rollouts:write");
  const { data, error, refetch } = useReviews(head.id);
  const { who } = useSession();
  const own = data?.data.find(({ created_by }) => created_by === who);
  return (
    <section aria-labelledby="reviews">
      <h2 id="reviews">Review</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data?.data.length === 0 && <p className="soft">No reviews yet.</p>}
      {data?.data.map((review) => (
        <Written key={review.id} review={review} isOwn={review === own} />
      ))}
      {mayWrite && data !== undefined && head.status === "done" && (
        <ReviewForm key={own?.updated_at ?? 0} head={head} form={form} own={own ?? null} />
      )}
    </section>
  );
}

function Written({ review, isOwn }: { readonly review: ReviewView; readonly isOwn: boolean }) {
  const { created_by, mark, note, values, why, updated_at } = review;
  return (
    <article className="judgement">
      <h3>
        {mark !== null && <Badge state={mark} tone={TONES[mark]} />} <code>{created_by}</code>
        {isOwn && ", you"}
      </h3>
      <p className="soft">{timeText(updated_at)}</p>
      {values.length > 0 && (
        <ul className="plain">
          {values.map(({ of, name, value, given }) => (
            <li key={`${of} ${name}`}>
              <Shown text={of === "reward" ? "reward" : `${of} ${name}`} most={200} />:{" "}
              <b>
                <Shown text={String(value)} most={200} />
              </b>{" "}
              <span className="soft">
                the rollout has <Shown text={given === null ? "none" : String(given)} most={200} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {why !== null && <ShownBlock text={why} />}
      {note !== null && <ShownBlock text={note} />}
    </article>
  );
}

interface ReviewFormProps extends ReviewsProps {
  readonly own: ReviewView | null;
}

function ReviewForm({ head, form, own }: ReviewFormProps) {
  useKeys([{ keys: "r", label: "write a review", run: () => form.current?.focus() }]);
  const scores = head.scores.slice(0, LIMITS.reviewValues).map(({ name }) => name);
  const judges = judgesOf(head);
  const before = (of: string, name: string) => {
    return own?.values.find((value) => value.of === of && value.name === name)?.value;
  };
  return (
    <>
      <Form
        submit={own === null ? "Save review" : "Replace review"}
        act={(fields) => api.reviews.put(head.id, reviewIn(fields, scores, judges))}
        onDone={() => undefined}
        changes={["reviews", "agreement"]}
        fields={["mark", "note", "reward", "why"]}
      >
        <Field name="mark" label="Mark">
          {(control) => (
            <select {...control} ref={form} defaultValue={own?.mark ?? ""}>
              <option value="">none</option>
              {MARKS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
        <ValueField name="reward" label="Reward that it should have" value={before("reward", "reward")} isNumber />
        {scores.map((name) => (
          <ValueField
            key={name}
            name={`score ${name}`}
            label={`Score ${name}`}
            value={before("score", name)}
            isNumber
          />
        ))}
        {judges.map(({ name, isNumber }) => (
          <ValueField
            key={name}
            name={`judge ${name}`}
            label={`Verdict of judge ${name}`}
            value={before("judge", name)}
            isNumber={isNumber}
          />
        ))}
        <TextField
          name="why"
          label="Why"
          value={own?.why ?? ""}
          help="Required if a value differs from the rollout's own. Leave empty what you do not judge."
        />
        <Field name="note" label="Note">
          {(control) => (
            <textarea {...control} rows={3} maxLength={LIMITS.reviewNoteCharacters} defaultValue={own?.note ?? ""} />
          )}
        </Field>
      </Form>
      {own !== null && (
        <ActionButton act={() => api.reviews.delete(head.id)} changes={["reviews", "agreement"]}>
          Delete your review
        </ActionButton>
      )}
    </>
  );
}

interface ValueFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value: string | number | undefined;
  readonly isNumber: boolean;
}

function ValueField({ name, label, value, isNumber }: ValueFieldProps) {
  return (
    <Field name={name} label={label}>
      {(control) => (
        <input
          {...control}
          {...(isNumber ? { type: "number", step: "any" } : { type: "text", maxLength: LIMITS.reviewLabelCharacters })}
          defaultValue={value}
          autoComplete="off"
        />
      )}
    </Field>
  );
}

interface ReviewedJudge {
  readonly name: string;
  readonly isNumber: boolean;
}

/** Judges with one label or number for the rollout. */
function judgesOf({ judgements }: RolloutHead): readonly ReviewedJudge[] {
  const verdicts = Map.groupBy(judgements, ({ judge }) => judge);
  return Array.from(verdicts).flatMap(([name, all]) => {
    const [verdict = null, ...others] = new Set(all.map((one) => one.verdict));
    if (others.length > 0 || verdict === null || typeof verdict === "object") return [];
    return [{ name, isNumber: typeof verdict === "number" }];
  });
}

function reviewIn(fields: FormData, scores: readonly string[], judges: readonly ReviewedJudge[]): ReviewRequestInput {
  const givenScores = scores.flatMap((name) => {
    const value = numberOf(fields, `score ${name}`);
    return value === undefined ? [] : [[name, value] as const];
  });
  const givenVerdicts = judges.flatMap(({ name, isNumber }) => {
    const field = `judge ${name}`;
    const value = isNumber ? numberOf(fields, field) : textOf(fields, field);
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    mark: MARKS.find((one) => one === textOf(fields, "mark")) ?? null,
    note: textOf(fields, "note") ?? null,
    reward: numberOf(fields, "reward") ?? null,
    scores: Object.fromEntries(givenScores),
    judges: Object.fromEntries(givenVerdicts),
    why: textOf(fields, "why") ?? null,
  };
}
