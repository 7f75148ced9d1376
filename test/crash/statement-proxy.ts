import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'

/** Where a connection is held: its statement has not reached PostgreSQL, or has been carried out and its response is held back. */
export interface HoldPoint {
  readonly statement: string
  readonly side: 'before' | 'after'
}

/**
 * Stands between the service and PostgreSQL, knows the statements on the connections of one pool by their names (or, without
 * a name, by their text), and holds such a connection between any two of them.
 */
export interface StatementProxy extends AsyncDisposable {
  /** The address of the database behind the proxy. */
  readonly url: string
  /** The statements of the pool since the last call, in the order in which they were sent. */
  takeStatements(pool: string): string[]
  /** Resolves when a connection of the pool is held at the next such statement; it stays held until it is closed. */
  holdAt(pool: string, point: HoldPoint): Promise<void>
  /** Forgets a hold that has not come. */
  cancel(): void
}

type Hold = HoldPoint & { readonly pool: string; readonly resolve: () => void }

export async function startStatementProxy(databaseUrl: string): Promise<StatementProxy> {
  const target = new URL(databaseUrl)
  let seen: { readonly pool: string; readonly statement: string }[] = []
  let hold: Hold | null = null
  const sockets = new Set<Socket>()

  function pass(client: Socket, server: Socket): void {
    let pool: string | null = null
    let isHeld = false
    /** Groups of messages that end in a Sync or a simple Query: sent, and completed by ReadyForQuery. The start-up is the first. */
    let sent = 1
    let completed = 0
    let heldResponse: (Hold & { readonly group: number }) | null = null
    let group: Buffer[] = []
    let statement = ''

    const readClient = splitMessages(
      () => pool === null,
      (type, message) => {
        if (isHeld) return
        if (pool === null) {
          pool = /application_name\0heartbeat-operator ([^\0]*)\0/.exec(message.toString('latin1'))?.[1] ?? ''
          return void server.write(message)
        }
        if (type === 'P') statement = readText(message, 5) || readText(message, 6)
        if (type === 'B') statement = readText(message, 6 + readText(message, 5).length) || statement
        if (type === 'Q') statement = readText(message, 5)
        group.push(message)
        if (type === 'P' || type === 'B' || type === 'D' || type === 'E') return
        if (type === 'S' || type === 'Q') {
          seen.push({ pool, statement })
          sent += 1
          if (hold !== null && hold.pool === pool && hold.statement === statement) {
            const point = hold
            hold = null
            if (point.side === 'before') {
              isHeld = true
              return point.resolve()
            }
            heldResponse = { ...point, group: sent }
          }
        }
        server.write(Buffer.concat(group))
        group = []
      },
    )
    const readServer = splitMessages(
      () => false,
      (type, message) => {
        if (type === 'Z') completed += 1
        const own = type === 'Z' ? completed : completed + 1
        if (heldResponse === null || own < heldResponse.group) return void client.write(message)
        if (type === 'Z') heldResponse.resolve()
      },
    )
    client.on('data', readClient)
    server.on('data', readServer)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  }

  const listener = createServer({ noDelay: true }, (client) =>
    pass(client, createConnection({ host: target.hostname, port: Number(target.port), noDelay: true })),
  )
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = new URL(databaseUrl)
  address.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`
  return {
    url: address.href,
    takeStatements(pool) {
      const taken = seen.filter((one) => one.pool === pool).map((one) => one.statement)
      seen = []
      return taken
    },
    holdAt(pool, point) {
      const { promise, resolve } = Promise.withResolvers<void>()
      hold = { ...point, pool, resolve }
      return promise
    },
    cancel() {
      hold = null
    },
    async [Symbol.asyncDispose]() {
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** PostgreSQL's framing: a type (which the first message of a client lacks), then a length that counts itself, then the rest. */
function splitMessages(isUntyped: () => boolean, onMessage: (type: string, message: Buffer) => void) {
  let buffer: Buffer = Buffer.alloc(0)
  return (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk])
    for (;;) {
      const head = isUntyped() ? 0 : 1
      if (buffer.length < head + 4) return
      const length = head + buffer.readInt32BE(head)
      if (buffer.length < length) return
      const message = buffer.subarray(0, length)
      buffer = buffer.subarray(length)
      onMessage(head === 0 ? '' : String.fromCharCode(message[0]!), message)
    }
  }
}

/** The text at `start`, up to its end mark. */
const readText = (message: Buffer, start: number) => message.toString('utf8', start, message.indexOf(0, start))
