/** What the fake API server answers besides objects: metav1.Status, and disturbances. */

import type { ServerResponse } from 'node:http'
import type { Refused } from './fake-api-storage.ts'

/** `hang`: no answer. `reset`: none, and the socket is gone. `break`: the answer stops half way, and the socket is gone. */
export type Disturbance =
  | 'hang'
  | 'reset'
  | 'break'
  | {
      readonly status: number
      readonly reason?: string
      readonly message?: string
      readonly headers?: Readonly<Record<string, string>>
      /** Instead of a metav1.Status. */
      readonly text?: string
      readonly json?: object
    }

export function statusOf({
  code,
  reason,
  message,
  details,
}: Pick<Refused, 'code' | 'reason' | 'message'> & { details?: object | undefined }) {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code }
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

export function disturbAnswer(response: ServerResponse, how: Disturbance): void {
  if (how === 'hang') return
  if (how === 'reset') return void response.socket?.resetAndDestroy()
  if (how === 'break') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 })
    response.write('{"kind":', () => response.socket?.destroy())
    return
  }
  const { status, reason = '', message = '', headers = {}, text, json } = how
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (text === undefined) {
    sendJson(response, status, json ?? statusOf({ code: status, reason, message }))
    return
  }
  response.writeHead(status, { 'content-type': 'text/html' })
  response.end(text)
}
