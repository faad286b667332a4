/** Colours of a terminal. What they say is said in words or shapes too. */

const CODES = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  grey: 90,
} as const;
export type Style = keyof typeof CODES;

export type Paint = (style: Style, text: string) => string;

/** Leaves text as it is where there are no colours. */
export function painter(colour: boolean): Paint {
  return (style, text) => {
    return colour && text !== "" ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
  };
}
