const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Whether the text is a UUID in its usual form, of any version and in any case. */
export function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}
