/**
 * Lists of healthchecks' API have no pages. The service reads a list in pieces and writes each as the client reads, so
 * that a list of any size takes bounded memory.
 */

import type { Context } from 'koa'
import type { Lists } from '../api/lists.ts'
import { WHOLE_LIST_MS } from '../limits.ts'
import { ClientLeft, writeBytes } from '../write.ts'

const PART_CHARACTERS = 32_768

/** The text of `{"<name>":[...]}` in parts. */
export async function* writeList<Row>(
  name: string,
  pieces: AsyncIterable<readonly Row[]>,
  present: (row: Row) => object,
): AsyncGenerator<string> {
  let text = `{"${name}":[`
  let isFirst = true
  for await (const rows of pieces)
    for (const row of rows) {
      text += `${isFirst ? '' : ','}${JSON.stringify(present(row))}`
      isFirst = false
      if (text.length < PART_CHARACTERS) continue
      yield text
      text = ''
    }
  yield `${text}]}`
}

export interface ListOptions {
  readonly lists: Lists
  readonly organizationId: string
  /** An error in the middle of the response. The client sees a broken connection. */
  readonly onBroken: (error: unknown) => void
}

/** A list of one part is a response like any other. Throws what reading the first two parts throws. */
export async function sendList(ctx: Context, list: AsyncIterator<string>, options: ListOptions): Promise<void> {
  const { lists, organizationId, onBroken } = options
  const { res } = ctx
  await lists.hold(res, organizationId, WHOLE_LIST_MS)
  const next = () => lists.inTurn(organizationId, () => list.next())
  const first = await next()
  let part = await next()
  ctx.type = 'json'
  if (part.done) {
    ctx.body = first.value
    return
  }
  ctx.respond = false
  ctx.status = 200
  res.on('error', () => {})
  try {
    await writeBytes(res, Buffer.from(first.value))
    for (; !part.done; part = await next()) await writeBytes(res, Buffer.from(part.value))
    res.end()
  } catch (error) {
    if (!(error instanceof ClientLeft)) onBroken(error)
    res.destroy()
  }
}
