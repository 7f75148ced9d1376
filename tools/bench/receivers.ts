/**
 * Webhook receivers, a process of its own: `receivers.ts <how many>` prints a line of JSON with their URLs, and after each line
 * that it reads another one with what arrived so far. `receivers.ts <how many> chunks`: they respond in chunks of a byte,
 * without an end.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'

export interface Arrived {
  /** Different events, over all receivers. */
  readonly events: number
  readonly repeats: number
  /** Events that came to a receiver after a younger one of their check. */
  readonly overtaken: number
  /** When the last check.down came. */
  readonly lastDownAt: number
  /** The most connections that had a request without the end of its response. */
  readonly mostAtOnce: number
}

/** Not so many that the client ends the connection (runtime/short-chunks.ts): the client waits for more of them. */
const CHUNKS = '1\r\nx\r\n'.repeat(1_000)

let events = 0
let repeats = 0
let overtaken = 0
let lastDownAt = 0
let atOnce = 0
let mostAtOnce = 0

const urls: string[] = []
for (let i = 0; i < Number(process.argv[2]); i += 1) {
  const seen = new Set<string>()
  const newest = new Map<string, string>()
  const server = createServer((request, response) => {
    let body = ''
    atOnce += 1
    mostAtOnce = Math.max(mostAtOnce, atOnce)
    response.once('close', () => {
      atOnce -= 1
    })
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const { id, type, data } = JSON.parse(body) as { id: string; type: string; data: { check: { id: string } } }
      if (seen.has(id)) repeats += 1
      else {
        seen.add(id)
        events += 1
        const last = newest.get(data.check.id)
        if (last !== undefined && last > id) overtaken += 1
        newest.set(data.check.id, id)
      }
      if (type === 'check.down') lastDownAt = Date.now()
      if (process.argv[3] !== 'chunks') return void response.writeHead(204).end()
      response.writeHead(200).flushHeaders()
      request.socket.write(CHUNKS)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
}
process.stdout.write(`${JSON.stringify(urls)}\n`)
for await (const _line of createInterface(process.stdin)) {
  const arrived: Arrived = { events, repeats, overtaken, lastDownAt, mostAtOnce }
  process.stdout.write(`${JSON.stringify(arrived)}\n`)
}
process.exit()
