/** The audit log: who did what, when, to what (design, section 3.6). */

import { listEntries } from '../../audit/find-entries.ts'
import { AuditEntry, AuditList, AuditQuery } from './audit.schema.ts'
import { readList } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const listAudit = endpoint({
  summary: 'List the audit log, newest first',
  query: AuditQuery,
  response: AuditList,
  handle({ context, caller, query }) {
    const { limit: _limit, cursor: _cursor, ...filter } = inCamelCase(query)
    return readList('audit', AuditEntry, query, (piece) => listEntries(context, caller, filter, piece))
  },
})
