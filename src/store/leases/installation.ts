/** The id of the installation: of this database and all processes on it (design, section 6). */

import type { Queryable } from '../postgres/database.ts'

/** A UUID, made by the first call and kept by dumps. Processes that call it at the same time get the same one. */
export async function findInstallation(db: Queryable): Promise<string> {
  const find = async () => (await db.query<{ id: string }>('select id from installation')).rows[0]?.id
  const found = await find()
  if (found !== undefined) return found
  await db.query('insert into installation default values on conflict do nothing')
  return (await find())!
}
