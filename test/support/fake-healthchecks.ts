/** A healthchecks instance that responds with the lists that a test gives it, and with faults before them. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export const READ_WRITE_KEY = 'w'.repeat(32)
export const READ_ONLY_KEY = 'r'.repeat(32)

export interface Lists {
  readonly checks: readonly object[]
  readonly channels: readonly object[]
}

export interface RecordedCheck {
  readonly name: string
  readonly uuid: string
  readonly slug: string
  readonly status: string
}

/** What an instance responded: test/fixtures/healthchecks/record.ts. */
export const RECORDED = JSON.parse(
  readFileSync(new URL('../fixtures/healthchecks/responses.json', import.meta.url), 'utf8'),
) as { readonly checks: readonly RecordedCheck[]; readonly channels: readonly object[] }

/** So many checks with different ids, of the shapes that were recorded. */
export const recordedChecks = (count: number): RecordedCheck[] =>
  Array.from({ length: count }, (_, place) => ({
    ...RECORDED.checks[place % RECORDED.checks.length]!,
    uuid: `00000000-0000-4000-8000-${String(place).padStart(12, '0')}`,
  }))

export interface FakeHealthchecks extends AsyncDisposable {
  readonly url: string
  readonly requests: readonly string[]
  lists: Lists
  /** What the next requests get instead, in their order; null: the response that they ask for; `cut`: the half of it; `drop`: none. */
  faults: ({ readonly status: number; readonly headers?: Record<string, string> } | 'cut' | 'drop' | null)[]
}

interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

/** Below `path`, as behind a proxy; `version` is the only one that it knows. */
export async function startFakeHealthchecks(
  lists: Lists,
  { path = '', version = 'v3' }: { readonly path?: string; readonly version?: string } = {},
): Promise<FakeHealthchecks> {
  const requests: string[] = []
  const respond = (request: IncomingMessage): Answer => {
    const address = request.url ?? ''
    const list = new RegExp(`^${path}/api/${version}/(checks|channels)/$`).exec(address)?.[1]
    if (list === undefined) return { status: 404 }
    const key = request.headers['x-api-key']
    if (key === READ_WRITE_KEY) return { status: 200, body: { [list]: fake.lists[list as keyof Lists] } }
    if (key !== READ_ONLY_KEY || list === 'channels') return { status: 401, body: { error: 'wrong api key' } }
    return { status: 200, body: { checks: fake.lists.checks.map(withoutIds) } }
  }
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const fault = fake.faults.shift() ?? null
    if (fault === 'drop') return void response.destroy()
    const answer: Answer = fault === null || fault === 'cut' ? respond(request) : fault
    const { status, headers, body = {} } = answer
    const text = JSON.stringify(body)
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...headers,
    })
    if (fault !== 'cut') return void response.end(text)
    response.write(text.slice(0, text.length / 2), () => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fake: FakeHealthchecks = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    requests,
    lists,
    faults: [],
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  return fake
}

/** What a read-only key sees of a check. */
function withoutIds(check: object): object {
  const hidden = ['uuid', 'ping_url', 'update_url', 'pause_url', 'resume_url', 'channels']
  const shown = Object.entries(check).filter(([field]) => !hidden.includes(field))
  return { ...Object.fromEntries(shown), unique_key: '0'.repeat(40) }
}
