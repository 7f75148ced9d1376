/** Names of fields: `periodSeconds` in our types is `period_seconds` in the API, in forms and in the database. */
export function toSnakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
