/** The tokens of Uptime Kuma's push monitors (design, section 3.3): each is the right to ping one check, whichever monitor it came from. */

import type { Queryable } from '../postgres/database.ts'

/**
 * Gives the token to the check, in the transaction that has made or kept the check. Returns the key of the check that has the token now: another
 * one's token stays with that. Throws a check violation for a text that is no token (domain/push-token.ts).
 */
export async function insertPushToken(tx: Queryable, token: string, checkKey: number): Promise<number> {
  // The update changes nothing; it locks the row that is there, and returns it.
  const { rows } = await tx.query<{ key: number }>({
    name: 'insert_push_token',
    text: `insert into push_tokens as t (token, check_key) values ($1, $2)
      on conflict (token) do update set check_key = t.check_key returning t.check_key as key`,
    values: [token, checkKey],
  })
  return rows[0]!.key
}

/** The public ids of the checks by their tokens. Unknown tokens are left out. */
export async function findPushed(db: Queryable, tokens: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.queryColumns({
    name: 'find_pushed',
    text: `select t.token, c.public_id from push_tokens t join checks c on c.key = t.check_key where t.token = any($1::text[])`,
    values: [tokens],
  })
  return new Map(rows.map(([token, publicId]) => [token as string, publicId as string]))
}
