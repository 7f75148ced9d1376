/**
 * The open connections of a port: how many, which connection goes when there are too many, and how many of its requests
 * wait for responses. A stranger that holds many connections keeps no other client out.
 */

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { endBody } from './body.ts'
import { ADDRESS_PART, IGNORED, UNANSWERED } from './limits.ts'

/** A new connection looks no further for one that may go. */
const MOST_LOOKS = 1_000

/** By the time of the last request, or of the connect where there was none: the oldest one first. */
type Line = Map<Socket, Connection>

interface Connection {
  readonly group: string | null
  /** The line of all connections, and the line of the group. */
  readonly lines: readonly Line[]
  /** The responses in the order of their requests: those that are not sent yet, and the last one. */
  responses: ServerResponse[]
  isOver: boolean
  ignored: number
}

export const isPending = (response: ServerResponse | undefined) => response?.writableFinished === false

/**
 * At most `most` connections. `groupOf`: what counts as one client, by its address, which may have a quarter of them;
 * null: any number. `onDropped` is called when a connection is closed because there are too many.
 */
export function createConnections(most: number, groupOf: (address: string) => string | null, onDropped: () => void) {
  const open: Line = new Map()
  const groups = new Map<string, Line>()
  const mostOfGroup = most < ADDRESS_PART ? Number.POSITIVE_INFINITY : Math.floor(most / ADDRESS_PART)

  function close(socket: Socket, { group, lines }: Connection): void {
    for (const line of lines) line.delete(socket)
    if (group !== null && groups.get(group)?.size === 0) groups.delete(group)
  }

  /** Closes the connection of the line that has been without a request for longest. False: each has one in progress. */
  function closeIdle(line: Line): boolean {
    let looks = 0
    for (const [socket, connection] of line) {
      looks += 1
      if (looks > MOST_LOOKS || looks > line.size) break
      if (!isPending(connection.responses.at(-1))) {
        close(socket, connection)
        socket.destroy()
        return true
      }
      moveToEnd(socket, connection)
    }
    return false
  }

  function moveToEnd(socket: Socket, connection: Connection): void {
    for (const line of connection.lines) {
      line.delete(socket)
      line.set(socket, connection)
    }
  }

  function end(socket: Socket, connection: Connection): void {
    connection.isOver = true
    endAfter(socket, connection.responses.at(-1)!)
  }

  return {
    /** Makes room for it, or closes it. */
    open(socket: Socket): void {
      const group = groupOf(socket.remoteAddress ?? '')
      const ofGroup: Line = (group === null ? undefined : groups.get(group)) ?? new Map()
      const full = ofGroup.size >= mostOfGroup ? ofGroup : open.size >= most ? open : null
      if (full !== null) {
        onDropped()
        if (!closeIdle(full)) return void socket.destroy()
      }
      const lines = group === null ? [open] : [open, ofGroup]
      const connection: Connection = { group, lines, responses: [], isOver: false, ignored: 0 }
      for (const line of lines) line.set(socket, connection)
      if (group !== null) groups.set(group, ofGroup)
      socket.once('close', () => {
        close(socket, connection)
        // Node closes no response that waits behind another one.
        for (const response of connection.responses) endBody(response.req)
      })
    },
    /** False: the request must be left alone, because the connection ends. */
    take(socket: Socket, response: ServerResponse): boolean {
      const connection = open.get(socket)
      if (connection === undefined) return false
      if (connection.isOver) {
        connection.ignored += 1
        // Node reads on after each request, also where the socket is paused.
        if (connection.ignored > IGNORED) socket.destroy()
        return false
      }
      const { responses } = connection
      while (responses.length > 0 && !isPending(responses[0])) responses.shift()
      if (responses.length >= UNANSWERED) {
        end(socket, connection)
        return false
      }
      responses.push(response)
      moveToEnd(socket, connection)
      return true
    },
    /** The response to the latest request is the last one: the connection takes no more requests. */
    end(socket: Socket): void {
      const connection = open.get(socket)
      if (connection?.isOver === false) end(socket, connection)
    },
    /** The response to the latest request. With pipelining, earlier ones may still be pending before it. */
    latest: (socket: Socket) => open.get(socket)?.responses.at(-1),
    sockets: () => open.keys(),
  }
}

/** The response is the last one of its connection, so that the client goes on with another one. */
export function endAfter(socket: Socket, response: ServerResponse): void {
  if (response.writableFinished) socket.destroy()
  // When its head is out already, the header comes too late.
  else if (response.headersSent) response.once('finish', () => socket.destroySoon())
  else response.setHeader('Connection', 'close')
}
