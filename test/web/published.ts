/** The environments of the stage that another organisation published. */

/** With a hostile README: 1.0.0 is yanked, 1.1.0 failed its validation and must have an argument. */
export const LETTERS = "alice/letters";
/** It needs a secret and the network. 0.9.0 was taken down. */
export const SEARCHING = "alice/searching";
/** A Python environment. */
export const WHEEL = "alice/py-game";
