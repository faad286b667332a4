/**
 * Normalises media types for comparison: lower case, without parameters and surrounding space. Source: RFC 9110, 8.3.1.
 */

/** The media type of a content-type header, or of a MIME type in a document; "" if there is none. */
export function mediaTypeOf(contentType: string | null | undefined): string {
  return (contentType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function isJsonType(contentType: string | null | undefined): boolean {
  return /^application\/(?:[\w.-]+\+)?json$/.test(mediaTypeOf(contentType));
}
