/** A badge as an image, as JSON, and for shields.io (https://shields.io/badges/endpoint-badge). */

import { type StatusCounts, statusOfAll } from '../../domain/badge.ts'
import type { ShownStatus } from '../../domain/check.ts'
import type { BadgeFormat } from './path.ts'

export interface RenderedBadge {
  readonly type: string
  readonly text: string
}

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

const JSON_TYPE = 'application/json; charset=utf-8'

export async function renderBadge(
  format: BadgeFormat,
  { label, counts }: { readonly label: string; readonly counts: StatusCounts },
  isLateUp: boolean,
): Promise<RenderedBadge> {
  const status = statusOfAll(counts, isLateUp)
  switch (format) {
    case 'svg': {
      // When it is first needed: its tables of widths take 5 MB.
      const { makeBadge } = await import('badge-maker')
      return {
        type: 'image/svg+xml; charset=utf-8',
        text: makeBadge({ label, message: status, color: COLORS[status] }),
      }
    }
    case 'json': {
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
      return { type: JSON_TYPE, text: JSON.stringify({ status, total, grace: counts.late, down: counts.down }) }
    }
    case 'shields': {
      const badge = { schemaVersion: 1, label, message: status, color: SHIELDS_COLORS[status] }
      return { type: JSON_TYPE, text: JSON.stringify(badge) }
    }
  }
}
