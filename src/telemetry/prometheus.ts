/**
 * Writes Prometheus' text format 0.0.4. A family without samples is left out, so that an unknown value is not shown as
 * 0. Names of families and labels are ours; label values may be any text.
 */
export const PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";

export interface Sample {
  /** Appended to the family's name: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: "gauge" | "counter" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

export function prometheusText(families: readonly Family[]): string {
  const shown = families.filter(({ samples }) => samples.length > 0);
  return shown.map(familyText).join("");
}

/** The samples of one histogram. `counts`: one per bound, and one for values beyond the last bound. */
export function histogramSamples(
  labels: Readonly<Record<string, string>>,
  { bounds, counts, sum }: Readonly<Record<"bounds" | "counts", readonly number[]>> & { readonly sum: number },
): Sample[] {
  let within = 0;
  const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound, at) => {
    within += counts[at] ?? 0;
    return { suffix: "_bucket", labels: { ...labels, le: numberText(bound) }, value: within };
  });
  return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: within }];
}

function familyText({ name, type, help, samples }: Family): string {
  const said = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  const lines = samples.map(({ suffix = "", labels = {}, value }) => {
    return `${name}${suffix}${labelsText(labels)} ${numberText(value)}`;
  });
  return `# HELP ${name} ${said}\n# TYPE ${name} ${type}\n${lines.join("\n")}\n`;
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    return `${name}="${value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"')}"`;
  });
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}
