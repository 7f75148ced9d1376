import { listChecks as listPieces, type PlacedCheck } from '../../src/checks/find-checks.ts'
import { listPings as listPiece, type PingFilter, type PingRecord } from '../../src/checks/find-history.ts'
import type { Tenant } from '../../src/domain/access.ts'
import type { CheckPlace } from '../../src/domain/check-order.ts'
import { inPieces, type Page, type PageRequest } from '../../src/domain/page.ts'
import type { Context } from '../../src/store/context.ts'

export { listFlips } from '../../src/checks/find-history.ts'

/** The pings of a check as one page, with their bodies unless `filter` says otherwise. */
export async function listPings(
  context: Context,
  tenant: Tenant,
  checkId: string,
  request: PageRequest,
  filter: Partial<Parameters<typeof listPiece>[3]> & PingFilter = {},
): Promise<Page<PingRecord>> {
  const read = (piece: PageRequest) => listPiece(context, tenant, checkId, { body: 'full', ...filter }, piece)
  return join(inPieces(request, read))
}

/** The checks of a project as one page. */
export async function listChecks(...given: Parameters<typeof listPieces>): Promise<Page<PlacedCheck, CheckPlace>> {
  return join(listPieces(...given))
}

async function join<Row, Place>(pieces: AsyncIterable<Page<Row, Place>>): Promise<Page<Row, Place>> {
  const rows: Row[] = []
  let next: Place | null = null
  for await (const piece of pieces) {
    rows.push(...piece.rows)
    next = piece.next
  }
  return { rows, next }
}
