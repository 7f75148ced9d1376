/** From the ids that pings carry to the keys that rows have. */

import { uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'

export async function findKeys(tx: Queryable, publicIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.queryColumns({
    name: 'find_keys',
    text: 'select public_id, key from checks where public_id = any($1::uuid[])',
    values: [uuidArray(publicIds)],
  })
  return new Map(rows.map(([publicId, key]) => [publicId as string, key as number]))
}
