/** Tables of pairs as text: `# family`, then lines of an answer, `==` or `!=`, and a target. */
export interface Pair {
  readonly family: string;
  readonly answer: string;
  readonly target: string;
  readonly equal: boolean;
}

export function readPairs(table: string): Pair[] {
  let family = "";
  return table.split("\n").flatMap((line): Pair[] => {
    if (line.startsWith("# ")) family = line.slice(2);
    const sign = / (==|!=) /.exec(line);
    if (line.startsWith("# ") || sign === null) return [];
    const [answer, target] = [line.slice(0, sign.index), line.slice(sign.index + sign[0].length)];
    return [{ family, answer, target, equal: sign[1] === "==" }];
  });
}
