/** The environments of the stage that another organisation published. */

/** With a hostile README: 1.0.0 is yanked, 1.1.0 failed its validation. */
export const LETTERS = "alice/letters";
/** It needs a secret and the network. */
export const SEARCHING = "alice/searching";
