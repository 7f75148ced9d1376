/** A Matrix homeserver: https://spec.matrix.org/latest/client-server-api/, "Sending events to a room" and "m.room.message msgtypes". */

import { findForeignLink, readMarkup } from '../markup.ts'
import type { ReceiverAnswer } from '../receiver.ts'
import { demand, Refusal, startHttpService } from './service.ts'

const TOKEN = 'syt_s3cret_aGVhcnRiZWF0_XXXX'
const ROOM = '!abcdefg:example.com'
const PATH = new RegExp(`^/_matrix/client/v3/rooms/${encodeURIComponent(ROOM)}/send/m\\.room\\.message/[\\w-]{1,255}$`)
/** Of those that clients show ("m.room.message msgtypes"), what a message may need. */
const TAGS = { p: [], strong: [], pre: [], code: [], a: ['href'] }
/** What the homeserver adds to an event: signatures, hashes, the ids of other events, the ids of the user and the room. */
const ADDED_BYTES = 4_000

const fault = (status: number, errcode: string, error: string, more?: object): ReceiverAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  text: JSON.stringify({ errcode, error, ...more }),
})

export const startMatrix = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'matrix', homeserver: url, room_id: ROOM, token: TOKEN }) as const,
    accept({ method, path, headers, body }) {
      demand(method === 'PUT' && PATH.test(path), 'M_UNRECOGNIZED')
      if (headers.authorization !== `Bearer ${TOKEN}`)
        throw new Refusal('M_UNKNOWN_TOKEN', fault(401, 'M_UNKNOWN_TOKEN', 'Invalid access token passed.'))
      demand(Buffer.byteLength(body) + ADDED_BYTES <= 65_536, 'M_TOO_LARGE')
      const content = JSON.parse(body)
      demand(content.msgtype === 'm.text' && content.body !== '', 'M_BAD_JSON')
      demand(content.format === 'org.matrix.custom.html', 'the HTML is not shown')
      demand(JSON.stringify(content['m.mentions']) === '{}', 'it may mention users')
      const { prose } = readMarkup(content.formatted_body, TAGS)
      demand(findForeignLink(prose) === null, `a link or a mention: ${findForeignLink(prose)}`)
      return { status: 200, text: JSON.stringify({ event_id: '$143273582443PhrSn' }) }
    },
    keyOf: ({ path }) => path,
    tooMany: fault(429, 'M_LIMIT_EXCEEDED', 'Too Many Requests', { retry_after_ms: 9_500 }),
    tooManyMs: 9_500,
    gone: fault(403, 'M_FORBIDDEN', `User @heartbeat:example.com not in room ${ROOM}`),
    isGoneAtOnce: true,
  })
