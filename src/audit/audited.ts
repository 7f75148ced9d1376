/**
 * A change and its audit entries, in one transaction (design, section 3.6). A use case that changes something runs its work here, and the type
 * of the work's result asks for what was done. The log line of an entry is written after the commit, never for a change that was rolled back.
 */

import type { Actor, Tenant } from '../domain/access.ts'
import { type Act, type AuditEntry, targetKindOf } from '../domain/audit.ts'
import { stampAfter, toMicrosecond } from '../domain/instant.ts'
import { parseAddress } from '../runtime/addresses.ts'
import { newId } from '../runtime/ids.ts'
import { insertEntries, type NewEntry } from '../store/audit/entries.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'

export interface Audited<T> {
  readonly result: T
  /** In their order. None: nothing was changed. */
  readonly acts: readonly Act[]
  /** Who acted, where only the work finds it out. */
  readonly by?: By
}

/** An actor alone acts on the data of the act's project, or else of the installation. */
export type By = Actor & { readonly organizationId?: Tenant['organizationId'] }

/** `change` may run again when the transaction lost a race. */
export async function audited<T>(context: Context, by: By, change: (tx: Queryable) => Promise<Audited<T>>): Promise<T> {
  const { result, entries } = await context.database.transaction(async (tx) => {
    const { result, acts, by: found = by } = await change(tx)
    const entries = toEntries(context, found, acts)
    await insertEntries(
      tx,
      entries.filter((_, place) => acts[place]!.isLogOnly !== true),
    )
    return { result, entries }
  })
  // After the commit: a change that is rolled back has no line.
  for (const { entry } of entries) context.onAudit?.(entry)
  return result
}

export function toEntries({ clock }: Pick<Context, 'clock'>, by: By, acts: readonly Act[]): NewEntry[] {
  // A microsecond apart, so that the list has them in their order.
  let next = toMicrosecond(clock.now())
  const { kind, id, name, address, organizationId = null } = by
  return acts.map(({ action, target, projectId, detail = {} }) => {
    const at = next
    next = stampAfter(at, at)
    const entry: AuditEntry = {
      id: newId(at),
      at,
      actor: { kind, id, name },
      action,
      target: target === null ? null : { kind: targetKindOf(action), ...target },
      address: address === null ? null : toPlainAddress(address),
      detail,
    }
    return { entry, organizationId, projectId }
  })
}

/** An IPv4-mapped IPv6 address as IPv4; others in their shortest form. Any text that is not an address stays as it is. */
export function toPlainAddress(address: string): string {
  return parseAddress(address)?.toString() ?? address
}
