import { expect } from 'vitest'
import { ConfigError, readConfig } from '../../../src/config/config.ts'

/** The faults that readConfig reports; none of them may show a secret. */
export function faultsOf(environment: Record<string, string>, ...secrets: readonly string[]): readonly string[] {
  try {
    readConfig(environment, false)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const secret of ['hunter2', ...secrets]) expect(error.message).not.toContain(secret)
    return error.faults
  }
}
