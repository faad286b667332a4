/** A state in one word. Its shape carries the same information as its colour. */
import { words } from "./format.ts";

export type Tone = "good" | "bad" | "warn" | "busy" | "plain";

const SIGNS: Readonly<Record<Tone, string>> = { good: "✓", bad: "✕", warn: "!", busy: "◌", plain: "·" };

const TONES: Readonly<Record<string, Tone>> = {
  completed: "good",
  scored: "good",
  delivered: "good",
  ready: "good",
  started: "good",
  applied: "good",
  running: "busy",
  queued: "busy",
  scoring: "busy",
  pending: "busy",
  updating: "busy",
  paused: "warn",
  unscored: "warn",
  cancelled: "plain",
  failed: "bad",
  refused: "bad",
};

interface BadgeProps {
  readonly state: string;
  readonly tone?: Tone;
  /** The same in more words, if the word is too short. */
  readonly title?: string;
}

export function Badge({ state, tone, title }: BadgeProps) {
  const shown = tone ?? TONES[state] ?? "plain";
  return (
    <span className={`badge ${shown}`} title={title}>
      <span aria-hidden="true">{SIGNS[shown]}</span> {words(state)}
    </span>
  );
}
