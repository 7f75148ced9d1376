/** The audit log: who did what, when, to what (design, section 3.6). */

import { listEntries } from '../../audit/find-entries.ts'
import { inPieces } from '../../domain/page.ts'
import { AuditList, AuditQuery } from './audit.schema.ts'
import { given, readEntries, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listAudit = endpoint({
  id: 'listAudit',
  summary: 'List the audit log, newest first',
  query: AuditQuery,
  status: 200,
  response: AuditList,
  async handle({ context, caller, query }) {
    const { action, actor_id: actorId, target_id: targetId } = query
    const filter = given({ action, actorId, targetId })
    const pieces = inPieces(toPageRequest(query), (piece) => listEntries(context, caller, filter, piece))
    return readEntries('audit', pieces, (entry) => ({ ...entry, at: toIso(entry.at) }))
  },
})
