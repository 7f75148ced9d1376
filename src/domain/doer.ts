/** Who did something to a check, as people see it. Apart from access.ts, which knows checks. */

/** `link` for who pressed a button behind the link of a message. */
export const DOER_KINDS = ['user', 'api_key', 'link', 'kubernetes'] as const
export interface Doer {
  readonly kind: (typeof DOER_KINDS)[number]
  /** The id of the user or of the key; null for the others. */
  readonly id: string | null
  readonly name: string | null
}
