import { createServer } from 'node:net'

/** A port in use. */
export async function takePort() {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  return {
    port: String((holder.address() as { port: number }).port),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => holder.close(() => resolve())),
  }
}

/** A port that nothing listened on a moment ago. */
export async function findFreePort(): Promise<string> {
  await using taken = await takePort()
  return taken.port
}
