import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'

/** A caller that is bound to a project may not see or change what belongs to the organization: `forbidden`. */
export function assertNotBound({ projectId }: Tenant, what: string): void {
  if (projectId !== null) throw new AppError('forbidden', `an API key that is bound to a project may not ${what}`)
}
