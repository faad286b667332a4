/** HTML as a template. Whatever is put in is escaped, unless it was made by the template itself. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Piece = string | number | Html | readonly Html[];

export function html(literals: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(String.raw({ raw: literals }, ...pieces.map(textOf)));
}

function textOf(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (typeof piece === "object") return piece.map(({ text }) => text).join("");
  return String(piece).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
