/**
 * Media types as they are compared: without case, parameters and surrounding space. Source: RFC 9110, 8.3.1.
 */

/** Of a content-type header, or a MIME type in a document; "" where there is none. */
export function mediaTypeOf(contentType: string | null | undefined): string {
  return (contentType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function isJsonType(contentType: string | null | undefined): boolean {
  return /^application\/(?:[\w.-]+\+)?json$/.test(mediaTypeOf(contentType));
}
