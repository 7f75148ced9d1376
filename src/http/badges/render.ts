/** A badge as an image, as JSON, and for shields.io (https://shields.io/badges/endpoint-badge). */

import { type StatusCounts, statusOfAll } from '../../domain/badge.ts'
import type { ShownStatus } from '../../domain/check.ts'
import type { BadgeFormat } from './path.ts'

const COLORS: Readonly<Record<ShownStatus, string>> = {
  up: 'brightgreen',
  late: 'yellow',
  down: 'red',
  new: 'lightgrey',
  paused: 'lightgrey',
}

/** Words of shields.io, as healthchecks has them. */
const SHIELDS_COLORS: Readonly<Record<ShownStatus, string>> = {
  up: 'success',
  late: 'important',
  down: 'critical',
  new: 'inactive',
  paused: 'inactive',
}

export async function renderBadge(
  format: BadgeFormat,
  { label, counts }: { readonly label: string; readonly counts: StatusCounts },
  isLateUp: boolean,
) {
  const status = statusOfAll(counts, isLateUp)
  if (format === 'svg') {
    // When it is first needed: its tables of widths take 5 MB.
    const { makeBadge } = await import('badge-maker')
    const text = makeBadge({ label, message: status, color: COLORS[status] })
    return { type: 'image/svg+xml; charset=utf-8', text }
  }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const body =
    format === 'json'
      ? { status, total, grace: counts.late, down: counts.down }
      : { schemaVersion: 1, label, message: status, color: SHIELDS_COLORS[status] }
  return { type: 'application/json; charset=utf-8', text: JSON.stringify(body) }
}
