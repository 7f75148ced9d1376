/** The only reader of the environment (design, section 12). It reports all faults at once and returns plain values. */

import { join } from 'node:path'
import type { z } from 'zod'
import { findPasswordFault } from '../domain/password.ts'
import { findPattern, findWeakness } from '../domain/weak-secret.ts'
import { isLoopbackHost } from '../runtime/addresses.ts'
import { StartFault } from '../runtime/start-fault.ts'
import { smtpNameOf } from './mail.ts'
import { readVariable } from './values.ts'
import { type Secrets, VARIABLES, type Values } from './variables.ts'

export type Config = ReturnType<typeof complete>

/** One line for each fault of the environment, with the variable's name and what would be right. */
export class ConfigError extends StartFault {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
    super(`the configuration has ${count}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

export function readConfig(environment: NodeJS.ProcessEnv, isTerminal: boolean): Config {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  const secrets: Record<string, unknown> = {}
  const table: [string, readonly [string, z.ZodType, 'secret'?]][] = Object.entries(VARIABLES)
  for (const [key, [name, schema, secret]] of table) {
    const parsed = schema.safeParse(readVariable(environment, name, faults))
    if (!parsed.success) faults.push(...parsed.error.issues.map(({ message }) => `${name} ${message}`))
    else (secret === undefined ? values : secrets)[key] = parsed.data
  }
  // A variable with a fault has no value.
  const read = values as Values
  const hidden = secrets as Secrets
  const hasNoKey = hidden.secretKey === undefined && !faults.some((fault) => fault.startsWith('SECRET_KEY'))
  // A controller opens no channel and signs no token.
  if (hidden.databaseUrl !== undefined && hasNoKey && read.role !== 'controller')
    faults.push(
      'SECRET_KEY is needed with DATABASE_URL, the same for every replica: make one with `openssl rand -base64 32`',
    )
  if (read.role === 'controller' && read.kubernetes === 'off')
    faults.push('KUBERNETES must be auto or required with ROLE controller, and it is off')
  // Whether it is one of the other faults was checked above.
  if (hidden.bootstrapPassword !== undefined && read.bootstrapEmail !== undefined) {
    const fault = findPasswordFault(hidden.bootstrapPassword, read.bootstrapEmail)
    if (fault !== null) faults.push(`BOOTSTRAP_PASSWORD ${fault}`)
  }
  const weak = findWeakSecrets(hidden)
  const isLoopback = isLoopbackHost(read.bindAddress)
  if (!isLoopback) faults.push(...weak.map((text) => `${text}. Only a loopback BIND_ADDRESS accepts it`))
  if (faults.length > 0) throw new ConfigError(faults)
  return complete(read, hidden, weak, isTerminal)
}

/** With the defaults that depend on other values. `warnings`: what the log says of secrets that can be guessed. */
function complete(values: Values, secrets: Secrets, warnings: readonly string[], isTerminal: boolean) {
  const { watchCronJobs: watch, cronJobTimeZone: timeZone, cronJobLogs: logs, ...read } = values
  return Object.freeze({
    ...read,
    spoolDir: read.spoolDir ?? join(read.dataDir, 'spool'),
    cronJobs: Object.freeze({ watch, timeZone, logs }),
    smtpName: read.smtpName ?? smtpNameOf(read.baseUrl),
    logFormat: read.logFormat ?? (isTerminal ? 'pretty' : 'json'),
    warnings,
    secrets: Object.freeze(secrets),
  })
}

/** One line for each secret that a stranger would try first. */
function findWeakSecrets({ secretKey, bootstrapApiKey, bootstrapPassword }: Secrets): string[] {
  const found: [name: string, why: string | null, command: string][] = [
    ['SECRET_KEY', secretKey === undefined ? null : findPattern([...secretKey]), 'openssl rand -base64 32'],
    ['BOOTSTRAP_API_KEY', findWeakness(bootstrapApiKey), 'echo hbk_first_$(openssl rand -hex 20)'],
    ['BOOTSTRAP_PASSWORD', findWeakness(bootstrapPassword), 'openssl rand -base64 18'],
  ]
  return found.flatMap(([name, why, command]) =>
    why === null ? [] : [`${name} can be guessed, because it ${why}: make one with \`${command}\``],
  )
}
