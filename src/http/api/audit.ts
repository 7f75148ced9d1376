/** The audit log: who did what, when, to what (design, section 3.6). */

import { z } from 'zod'
import { listEntries } from '../../audit/find-entries.ts'
import { ACTOR_KINDS } from '../../domain/access.ts'
import { AUDIT_ACTIONS } from '../../domain/audit.ts'
import * as field from './fields.ts'
import { listEndpoint } from './list-page.ts'
import { inCamelCase } from './present.ts'

const STANDARD_LIMIT = 100

export const AuditQuery = z.object({
  action: field.oneOf(AUDIT_ACTIONS).optional().meta({ description: 'Only entries of this action.' }),
  actor_id: field.uuid('Only what this user or API key did.').optional(),
  target_id: field.uuid('Only what was done to this object.').optional(),
  ...field.page('audit', STANDARD_LIMIT),
})

export const AuditEntry = field.shape('AuditEntry', {
  id: field.id(),
  at: field.instant('When it was done.'),
  actor: z
    .object({
      kind: z.enum(ACTOR_KINDS),
      id: field.idOrNull('Of the user or the API key.'),
      name: field.stringOrNull(
        'E-mail address of the user, name of the API key, or name of the cluster of the controller.',
      ),
    })
    .meta({ description: '`system`: the service itself, and log-ins without an account.' }),
  action: z.enum(AUDIT_ACTIONS),
  target: z
    .object({
      kind: field.string('Such as `check`, `channel`, `project`, `api_key`, `user`, `session`.'),
      id: field.id(),
      name: z.string().nullable(),
    })
    .nullable()
    .meta({ description: 'Null for a log-in without an account.' }),
  address: field.stringOrNull('Network address of the actor, without a port. Null for the controller and the service.'),
  detail: z.record(z.string(), z.unknown()).meta({
    description: 'More about the action, for example `changed`: the names of the changed fields. It holds no secrets.',
  }),
})

export const listAudit = listEndpoint({
  list: 'audit',
  entry: AuditEntry,
  summary: 'List the audit log, newest first',
  query: AuditQuery,
  read({ context, caller, query }, piece) {
    const { limit: _limit, cursor: _cursor, ...filter } = inCamelCase(query)
    return listEntries(context, caller, filter, piece)
  },
})
