/** `ENOENT`, `23505`: the code of an error of Node or PostgreSQL; undefined for any other. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
