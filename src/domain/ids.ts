const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The smallest and the largest UUID. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000'
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Whether the text is a UUID in its usual form, of any version and in any case. */
export function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}
