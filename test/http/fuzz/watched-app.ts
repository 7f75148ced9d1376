/** The product, with a record of the errors in its log and of unhandled rejections. */

import { expect } from 'vitest'
import type { Log } from '../../../src/runtime/log.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { exchange, writeHead } from '../../support/http.ts'

export interface WatchedApp {
  readonly app: TestApp
  /** It is alive and ready, stores a ping, and recorded no errors. */
  expectWell(): Promise<void>
}

export async function startWatchedApp(environment: Record<string, string> = {}): Promise<WatchedApp> {
  const faults: unknown[] = []
  const ignore = () => {}
  const note = (...line: unknown[]) => faults.push(line)
  const log = { debug: ignore, info: ignore, warn: ignore, error: note } as unknown as Log
  process.on('unhandledRejection', note)
  const app = await startTestApp({ environment: { RATE_LIMIT_PER_MINUTE: '1000000', ...environment }, log })
  const { publicId } = await app.createCheck({ name: 'Witness' })
  return {
    app,
    async expectWell() {
      for (const probe of ['/livez', '/readyz']) {
        expect((await exchange(app.opsUrl, writeHead('GET', probe))).status, probe).toBe(200)
      }
      const before = (await app.storedPings(publicId)).length
      expect((await exchange(app.pingUrl, writeHead('GET', `/ping/${publicId}`))).status).toBe(200)
      expect((await app.storedPings(publicId)).length).toBe(before + 1)
      process.off('unhandledRejection', note)
      expect(faults).toEqual([])
    },
  }
}
