/** The rules of Wordle. */

/**
 * For each letter of the guess: `G` in its place, `Y` in the word but elsewhere, `X` not in it. A letter is marked as
 * often as the word has it: places first, then from the left. Both words have the same length.
 */
export function feedbackOn(guess: string, answer: string): string {
  const left = new Map<string, number>();
  for (const [place, letter] of [...answer].entries()) {
    if (guess[place] !== letter) left.set(letter, (left.get(letter) ?? 0) + 1);
  }
  return [...guess]
    .map((letter, place) => {
      if (letter === answer[place]) return "G";
      const count = left.get(letter) ?? 0;
      left.set(letter, count - 1);
      return count > 0 ? "Y" : "X";
    })
    .join("");
}

/** verifiers' partial credit: 0.2 for a letter in its place, 0.1 for a letter elsewhere. */
export function lettersIn(feedback: string): number {
  const count = (mark: string) => [...feedback].filter((letter) => letter === mark).length;
  return 0.2 * count("G") + 0.1 * count("Y");
}
