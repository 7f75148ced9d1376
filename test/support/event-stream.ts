/** A reader of Server-Sent Events. */

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Visitor } from './visitor.ts'

export interface StreamEvent {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects in it decides
  readonly data: any
}

export interface EventStream extends AsyncDisposable {
  readonly status: number
  readonly headers: Headers
  readonly events: readonly StreamEvent[]
  /** All that was received. */
  text(): string
  isEnded(): boolean
}

/**
 * Opens `path` with the visitor's cookies. `origin`: of the service. Not with fetch: for a stream that is aborted it opens another connection,
 * which the service closes with 408 when no request has come on it for ten seconds. A request that is sent on it at that moment gets the 408.
 */
export async function openEventStream(
  origin: string,
  path: string,
  { cookies }: Pick<Visitor, 'cookies'>,
): Promise<EventStream> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  // The encodings that a browser accepts: a stream is not compressed even then.
  const headers = { cookie, accept: 'text/event-stream', 'accept-encoding': 'gzip, deflate, br' }
  const sent = request(origin + path, { headers, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const events: StreamEvent[] = []
  let text = ''
  let parsed = 0
  let isEnded = false
  const reading = (async () => {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      for (let end = text.indexOf('\n\n', parsed); end >= 0; end = text.indexOf('\n\n', parsed)) {
        const lines = text.slice(parsed, end).split('\n')
        parsed = end + 2
        const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
        if (field('event') !== undefined) events.push({ event: field('event')!, data: JSON.parse(field('data')!) })
      }
    }
  })()
    .catch(() => {})
    .finally(() => {
      isEnded = true
    })
  return {
    status: response.statusCode!,
    headers: new Headers(
      Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      ),
    ),
    events,
    text: () => text,
    isEnded: () => isEnded,
    async [Symbol.asyncDispose]() {
      sent.destroy()
      await reading
    },
  }
}
