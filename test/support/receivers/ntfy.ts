/** ntfy, by `server/server.go`, `server/actions.go` and `server/errors.go` of its source. */

import type { ReceiverAnswer } from '../receiver.ts'
import { demand, Refusal, startHttpService } from './service.ts'

const TOKEN = 'tk_s3cret7mVBoFD37zQVN29RhuMzNIz2'

const fault = (code: number, error: string): ReceiverAnswer => ({
  status: Math.floor(code / 100),
  headers: { 'content-type': 'application/json' },
  text: JSON.stringify({ code, http: Math.floor(code / 100), error, link: 'https://ntfy.sh/docs/publish/' }),
})

export const startNtfy = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'ntfy', topic: 'heartbeat', url, token: TOKEN, priority: 5 }) as const,
    accept({ method, path, headers, body }) {
      demand(method === 'POST' && path === '/', 'page not found')
      if (headers.authorization !== `Bearer ${TOKEN}`) throw new Refusal('unauthorized', fault(40101, 'unauthorized'))
      demand(Buffer.byteLength(body) < 2 * 4_096, 'JSON body too large')
      const { topic, title, message, tags, priority, click, actions = [] } = JSON.parse(body)
      demand(/^[-_A-Za-z0-9]{1,64}$/.test(topic), 'invalid request: topic invalid')
      // It would become a file, whose text no notification shows.
      demand(Buffer.byteLength(message) < 4_096, 'an attachment')
      demand(message.trim() !== '' && title.trim() !== '', 'without words')
      demand(Number.isInteger(priority) && priority >= 1 && priority <= 5, 'invalid priority parameter')
      demand(
        tags.every((tag: string) => /^\w+$/.test(tag)),
        'tags are separated by commas',
      )
      demand(click === undefined || URL.canParse(click), 'click opens nothing')
      demand(actions.length <= 3, 'invalid request: actions invalid, only 3 actions allowed')
      for (const { action, label, url } of actions)
        demand(action === 'view' && label !== '' && URL.canParse(url), 'invalid request: actions invalid')
      return { status: 200, text: JSON.stringify({ id: 'hwQ2YpKdmg', event: 'message', topic }) }
    },
    tooMany: fault(42908, 'limit reached: daily message quota reached'),
    tooManyMs: 3_600_000,
    gone: fault(40301, 'forbidden'),
    isGoneAtOnce: true,
  })
