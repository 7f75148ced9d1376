/** Google Chat: https://developers.google.com/workspace/chat, "Method: spaces.messages.create", "Cards v2", "Format messages". */

import { demand, Refusal, startHttpService } from './service.ts'

const PATH = '/v1/spaces/AAAA/messages'
const fault = (code: number, status: string, message: string) => ({
  status: code,
  headers: { 'content-type': 'application/json; charset=UTF-8' },
  text: JSON.stringify({ error: { code, message, status } }),
})

export const startGoogleChat = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'googlechat', url: `${url}${PATH}?key=key-s3cret&token=s3cret%3D` }) as const,
    accept({ path, body }) {
      const { pathname, searchParams } = new URL(path, 'http://chat')
      if (pathname !== PATH) throw new Refusal('no space', fault(404, 'NOT_FOUND', 'Space not found.'))
      if (searchParams.get('key') !== 'key-s3cret' || searchParams.get('token') !== 's3cret=')
        throw new Refusal('wrong token', fault(401, 'UNAUTHENTICATED', 'Request had invalid token.'))
      // Without it each message is a thread of its own.
      demand(searchParams.get('messageReplyOption') === 'REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD', 'no threads')
      demandMessage(body)
      return { status: 200, text: '{"name":"spaces/AAAA/messages/1"}' }
    },
    keyOf: ({ path }) => new URL(path, 'http://chat').searchParams.get('requestId')!,
    tooMany: fault(429, 'RESOURCE_EXHAUSTED', 'Resource has been exhausted: /v1/spaces?key=key-s3cret&token=s3cret%3D'),
    tooManyMs: null,
    gone: fault(404, 'NOT_FOUND', 'Space not found: key-s3cret'),
    isGoneAtOnce: true,
  })

/** Throws Refusal for what Google Chat refuses or ignores, and for mark-up that is not ours. */
export function demandMessage(body: string): void {
  demand(Buffer.byteLength(body) <= 32_000, 'The message is too long')
  const { fallbackText, cardsV2, thread, ...unknown } = JSON.parse(body)
  demand(Object.keys(unknown).length === 0, `Unknown name "${Object.keys(unknown)}": Cannot find field.`)
  demand(typeof fallbackText === 'string' && fallbackText !== '', 'a notification would be empty')
  demand(thread === undefined || (typeof thread.threadKey === 'string' && thread.threadKey.length <= 4_000), 'no key')
  demand(cardsV2.length === 1 && typeof cardsV2[0].cardId === 'string', 'no card')
  const { sections, ...fields } = cardsV2[0].card
  demand(Object.keys(fields).length === 0 && sections.length === 1, 'Unknown name of a card')
  demand(sections[0].widgets.length > 0 && sections[0].widgets.length <= 100, 'widgets beyond 100 are ignored')
  for (const { textParagraph, buttonList, ...others } of sections[0].widgets) {
    demand(Object.keys(others).length === 0, 'Unknown widget')
    demand((textParagraph === undefined) !== (buttonList === undefined), 'a widget is one of its kinds')
    if (textParagraph !== undefined) readHtml(textParagraph.text)
    for (const { text, onClick } of buttonList?.buttons ?? [])
      demand(text !== '' && /^https?:$/.test(new URL(onClick.openLink.url).protocol), 'invalid button')
  }
}

const ENTITIES: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '<br>': '\n' }
const OURS = /^(?:<\/?b>|<font color="#[0-9a-f]{6}">|<\/font>)$/

/**
 * What people see of the text of a card. Throws Refusal for a tag that is not ours, and for one that is not closed. What
 * a person wrote about a check has links that show their own address.
 */
export function readHtml(html: string): string {
  const open: string[] = []
  const isDescription = html.startsWith('<b>About this check:</b><br>')
  const withoutLinks = isDescription ? html.replace(/<a href="(https?:\/\/[^"<>]+)">\1<\/a>/gi, '$1') : html
  const text = withoutLinks.replace(/<[^>]*>?|&\w*;?|>/g, (piece) => {
    const shown = ENTITIES[piece]
    if (shown !== undefined) return shown
    demand(OURS.test(piece), `untrusted text became mark-up: ${piece}`)
    if (!piece.startsWith('</')) open.push(/\w+/.exec(piece)![0])
    else demand(open.pop() === piece.slice(2, -1), 'tags that are not nested')
    return ''
  })
  demand(open.length === 0 && text.trim() !== '', 'a tag without an end, or an empty text')
  return text
}
