import { createLog } from '../../src/runtime/log.ts'

/** For tests of what is done, not of what is said about it. */
export const silentLog = createLog({ level: 'silent', format: 'json' })
