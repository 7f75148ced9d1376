/** The command line of the import. */

import { readFileSync } from 'node:fs'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { StartFault } from '../runtime/start-fault.ts'

/** The variable that may hold the key: other users of the machine see a command line, and a shell remembers it. */
const KEY_VARIABLE = 'HEALTHCHECKS_API_KEY'

export const IMPORT_USAGE = `usage: node src/main.ts import healthchecks --url https://hc.example.com --key - --project SLUG [--dry-run]
       node src/main.ts import uptime-kuma --file kuma.db --project SLUG [--dry-run]
--key - reads the API key from standard input; without --key it is in the variable ${KEY_VARIABLE}`

/** The command line is wrong; the message says how, and quotes no key. */
export class UsageError extends StartFault {}

interface Shared {
  /** Slug or id. */
  readonly project: string
  readonly isDryRun: boolean
}

export type ImportArguments =
  | (Shared & { readonly source: 'healthchecks'; readonly url: URL; readonly key: string })
  | (Shared & { readonly source: 'uptime-kuma'; readonly file: string })

const OPTIONS = {
  healthchecks: { url: { type: 'string' }, key: { type: 'string' } },
  'uptime-kuma': { file: { type: 'string' } },
} as const
const SHARED = { project: { type: 'string' }, 'dry-run': { type: 'boolean', default: false } } as const

interface Surroundings {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly readInput?: () => string
}

/** `given`: what follows `import`. Throws UsageError. */
export function readArguments(
  given: readonly string[],
  { env = {}, readInput = () => readFileSync(0, 'utf8') }: Surroundings = {},
): ImportArguments {
  const [source, ...args] = given
  if (source !== 'healthchecks' && source !== 'uptime-kuma')
    throw usage(source === undefined ? 'name what to import from' : 'nothing can be imported from there')
  const values = parse(source, args)
  const need = (name: string): string => {
    const value = values[name]
    if (typeof value !== 'string' || value === '') throw usage(`--${name} is missing`)
    return value
  }
  const shared = { project: need('project'), isDryRun: values['dry-run'] === true }
  if (source === 'uptime-kuma') return { source, file: need('file'), ...shared }
  const url = URL.parse(need('url'))
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '')
    throw usage('--url must be an address like https://hc.example.com')
  return { source, url, key: readKey(values.key ?? env[KEY_VARIABLE], readInput), ...shared }
}

function readKey(given: unknown, readInput: () => string): string {
  if (typeof given !== 'string' || given === '')
    throw usage(`--key is missing: give --key - and the key on standard input, or set ${KEY_VARIABLE}`)
  const key = given === '-' ? readLine(readInput) : given
  if (!/^[\x21-\x7e]+$/.test(key)) throw usage('--key must be an API key of healthchecks')
  return key
}

function readLine(readInput: () => string): string {
  try {
    return readInput().trim()
  } catch {
    throw usage('--key - is given, and standard input cannot be read')
  }
}

function parse(source: keyof typeof OPTIONS, args: string[]): Readonly<Record<string, unknown>> {
  try {
    const options: ParseArgsOptionsConfig = { ...OPTIONS[source], ...SHARED }
    return parseArgs({ args, options, allowPositionals: false }).values
  } catch (error) {
    // The message of an unexpected argument quotes it, which may be a key.
    const option = /^Unknown option '(--?[a-z-]+)'/.exec((error as Error).message)?.[1]
    throw usage(option === undefined ? 'an argument is not understood' : `there is no option ${option}`)
  }
}

function usage(fault: string): UsageError {
  return new UsageError(`${fault}\n${IMPORT_USAGE}`)
}
