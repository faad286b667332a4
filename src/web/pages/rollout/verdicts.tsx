/** The scores of a rollout, and what judges and people think of it, in a line each: they are in the first screen. */
import type { ReactNode, RefObject } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { Badge } from "../../components/badge.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { useMay } from "../../layout/session.tsx";
import { judgementText } from "./judgements.tsx";
import { TONES, useReviews } from "./reviews.tsx";

/** How many scores, judgements and reviews are named here; all of them are further down. */
const NAMED = 3;
/** Characters of a name, and of a reason or a note. */
const NAME = 80;
const SAID = 160;

interface VerdictsProps {
  readonly head: RolloutHead;
  /** The first field of the review form; null if the page has no such form. */
  readonly form: RefObject<HTMLElement | null>;
}

export function Verdicts({ head, form }: VerdictsProps) {
  const { judgements } = head;
  // Those that make the reward come first.
  const scores = head.scores.toSorted((one, other) => Number(one.weight === 0) - Number(other.weight === 0));
  return (
    <section className="verdicts" aria-label="Scores, judges and reviews">
      <Facts>
        {scores.length > 0 && (
          <Fact name="Scores">
            <Named of={scores.length}>
              {scores.slice(0, NAMED).map(({ name, score }) => (
                <li key={name}>
                  <Value name={name} text={scoreText(score)} />
                </li>
              ))}
            </Named>
          </Fact>
        )}
        {judgements.length > 0 && (
          <Fact name="Judges">
            <Named of={judgements.length}>
              {judgements.slice(0, NAMED).map(({ judge, key, pass, verdict, reason, error }) => (
                <li key={`${key}-${pass}`}>
                  <Value name={judge} text={judgementText(verdict)} /> <Said text={error ?? reason} />
                </li>
              ))}
            </Named>
          </Fact>
        )}
        <ReviewLine head={head} form={form} />
      </Facts>
    </section>
  );
}

function ReviewLine({ head, form }: VerdictsProps) {
  const mayWrite = useMay("rollouts:write");
  const { data } = useReviews(head.id);
  if (data === undefined) return null;
  const reviews = data.data;
  return (
    <Fact name="Reviews">
      <Named of={reviews.length}>
        {reviews.length === 0 && <li className="soft">none yet</li>}
        {reviews.slice(0, NAMED).map(({ id, mark, values, why, note }) => (
          <li key={id}>
            {mark !== null && <Badge state={mark} tone={TONES[mark]} />}{" "}
            {values.slice(0, NAMED).map(({ of, name, value }) => (
              <span key={`${of} ${name}`}>
                <Value name={name} text={String(value)} />{" "}
              </span>
            ))}
            <Said text={note ?? why} />
          </li>
        ))}
        {mayWrite && head.status === "done" && (
          <li>
            <button type="button" className="link" onClick={() => form.current?.focus()}>
              Write a review
            </button>{" "}
            <kbd>r</kbd>
          </li>
        )}
      </Named>
    </Fact>
  );
}

/** `of`: how many there are; the children name the first of them. */
function Named({ of, children }: { readonly of: number; readonly children: ReactNode }) {
  return (
    <ul className="plain row">
      {children}
      {of > NAMED && <li className="soft">and {countText(of - NAMED)} more</li>}
    </ul>
  );
}

function Value({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <>
      <Shown text={name} most={NAME} />{" "}
      <b>
        <Shown text={text} most={NAME} />
      </b>
    </>
  );
}

/** The beginning of a reason, on one line. */
function Said({ text }: { readonly text: string | null }) {
  if (text === null) return null;
  return (
    <span className="soft">
      <Shown text={text.slice(0, 2 * SAID).replaceAll(/\s+/g, " ")} most={SAID} />
    </span>
  );
}
