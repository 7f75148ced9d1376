import { expect } from 'vitest'
import { API_KEY, LOG_IN, spawnService } from '../support/service-process.ts'

/** Starting wrongly, as tests of it share it: one clear message, status 2, and no secret in it. */

/** For tests to put in wrong places. */
export const PASSWORD = 'hunter2-s3cret'

/** Starts where that must fail, and gives the lines that a person reads. */
export async function failureOf(environment: Record<string, string>): Promise<string[]> {
  await using service = spawnService(environment)
  const { status, signal } = await service.end()
  const { stdout, stderr } = service
  expect({ status, signal, stderr }).toEqual({ status: 2, signal: null, stderr: expect.stringMatching(/^.+\n/) })
  expect(stdout).not.toContain('ready')
  const ofUrl = URL.parse(environment.DATABASE_URL ?? '')?.password || PASSWORD
  for (const secret of [PASSWORD, ofUrl, API_KEY, LOG_IN.password]) expect(stdout + stderr).not.toContain(secret)
  return stderr.trimEnd().split('\n')
}

export function changed(url: string, change: (url: URL) => void): string {
  const copy = new URL(url)
  change(copy)
  return copy.href
}
