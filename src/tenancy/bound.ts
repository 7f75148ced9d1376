import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'

/** Throws AppError `forbidden` when the caller is bound to one project: what belongs to the organization is not its. */
export function assertNotBound({ projectId }: Tenant, asked: string): void {
  if (projectId !== null) throw new AppError('forbidden', { why: 'key_bound', asked })
}
