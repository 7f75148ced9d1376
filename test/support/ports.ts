import { createServer } from 'node:net'
import { pickPort } from '../../tools/cluster/control-plane-ports.ts'

/** A port in use. */
export async function takePort() {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  return {
    port: String((holder.address() as { port: number }).port),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => holder.close(() => resolve())),
  }
}

/** A port that nothing listens on, and that the system gives to no program that asks for any. */
export const findFreePort = async () => String(await pickPort())
