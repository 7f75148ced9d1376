/** `npm run db:schema`: writes test/schema.sql from a fresh database with all migrations applied. */

import { writeFileSync } from 'node:fs'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { describeSchema } from './schema.ts'

const server = await startPostgresServer()
const database = createDatabase({ url: server.url, name: 'schema', connections: 1, patient: true })
try {
  await migrate(database)
  writeFileSync(new URL('../../test/schema.sql', import.meta.url), await describeSchema(database))
} finally {
  await database.close()
  await server.remove()
}
