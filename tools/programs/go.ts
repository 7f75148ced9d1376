/** The Go toolchain, as far as the build of the test bed needs it. */

import { spawn } from 'node:child_process'
import { type Environment, ProgramsError } from './programs.ts'

/** Pure Go: no C compiler is needed, and no C library at run time. A go.work above the checkout must not interfere. */
const SETTINGS = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' }
const QUOTED_LINES = 20

/** `go1.26.8`, the toolchain that would build this module; null where no Go is installed. Throws ProgramsError. */
export async function askGoVersion(module: string, environment: Environment): Promise<string | null> {
  try {
    return (await runGo(module, environment, ['env', 'GOVERSION'])).trim()
  } catch (error) {
    if (error instanceof ProgramsError) throw error
    return null
  }
}

/** Resolves with what it printed on stdout. Throws ProgramsError with the end of what it said when it fails. */
export function runGo(module: string, environment: Environment, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, {
      cwd: module,
      env: { ...environment, ...SETTINGS },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const killWithUs = () => child.kill()
    process.once('exit', killWithUs)
    child.once('close', () => process.off('exit', killWithUs))
    let output = ''
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.once('error', reject)
    child.once('close', (status, signal) => {
      if (status === 0) return resolve(output)
      const end = said.trimEnd().split('\n').slice(-QUOTED_LINES).join('\n')
      const advice = /requires go >=/.test(said)
        ? 'install the newer Go that it names (https://go.dev/dl), or unset GOTOOLCHAIN to let Go fetch it'
        : 'when it could not download, look at the network and at GOPROXY (`go env GOPROXY`)'
      reject(new ProgramsError(`go ${args[0]} failed in ${module} (${status ?? signal}); ${advice}. It said:\n${end}`))
    })
  })
}
