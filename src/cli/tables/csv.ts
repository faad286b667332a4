/** The fields of one record of a CSV file (RFC 4180): separated by commas, quoted if they hold a comma or a line. */

/** Null if a quoted field is followed by other text than a separator. */
export function fieldsOf(record: string, separator: "," | "\t"): string[] | null {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    const [field, next] = record[at] === '"' ? quotedField(record, at) : plainField(record, at, separator);
    fields.push(field);
    if (next >= record.length) return fields;
    if (record[next] !== separator) return null;
    at = next + 1;
  }
}

/** Returns the field that begins at `start`, and where it ends. */
function plainField(record: string, start: number, separator: string): [string, number] {
  const next = record.indexOf(separator, start);
  const end = next < 0 ? record.length : next;
  return [record.slice(start, end), end];
}

function quotedField(record: string, start: number): [string, number] {
  let end = record.indexOf('"', start + 1);
  while (end >= 0 && record[end + 1] === '"') end = record.indexOf('"', end + 2);
  if (end < 0) return [record.slice(start), record.length];
  return [record.slice(start + 1, end).replaceAll('""', '"'), end + 1];
}
