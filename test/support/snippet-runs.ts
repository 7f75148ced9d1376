/** Runs the snippets of the dashboard as a user pastes them, against a ping API. */

import { execFile, spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { Snippet, SnippetId } from '../../src/http/dashboard/pages/checks/snippets.ts'
import { startUnsteadyFront } from './unsteady-front.ts'

export interface SnippetRun {
  readonly status: number
  /** Standard output and standard error together. */
  readonly output: string
}

interface Runner {
  /** Null: the snippet needs no program that may be missing. */
  readonly program: string | null
  /** Of a shorter time-out: `[what the snippet says, four seconds]`. In less, a ping may have no response yet on a busy machine, and is sent again. */
  readonly timeout: readonly [string, string]
  /** Files by their names, and the command. `fault`: the text with which the job fails; empty: it works. */
  readonly prepare: (text: string, fault: string) => { files: Record<string, string>; command: string[] }
}

const CURL = ['-m 10', '-m 4'] as const
const replaceOnce = (text: string, part: string, by: string) => {
  if (text.split(part).length !== 2) throw new Error(`the snippet has ${JSON.stringify(part)} not once:\n${text}`)
  return text.replace(part, () => by)
}
const withFault = (text: string, fault: string, job: string, failing: string) =>
  fault === '' ? text : replaceOnce(text, job, failing)
const shell = (script: string) => ['sh', '-c', script]

/** The runner of each snippet. */
export const RUNNERS: Record<SnippetId, Runner> = {
  curl: {
    program: 'curl',
    timeout: CURL,
    // As the last line of a job, which fails at its first failing command.
    prepare: (text) => ({ files: {}, command: shell(`set -e\n./your-job\n${text}`) }),
  },
  crontab: {
    program: 'curl',
    timeout: CURL,
    prepare(text) {
      const [, command = ''] = /^(?:#.*\n)*(?:\S+ ){5}(.*)\n$/.exec(text) ?? []
      if (/(^|[^\\])%/.test(command)) throw new Error('a % ends the command of a crontab')
      return {
        files: {},
        command: shell(replaceOnce(command.replaceAll('\\%', '%'), '/path/to/your-job', './your-job')),
      }
    },
  },
  bash: {
    program: 'bash',
    timeout: CURL,
    prepare: (text) => ({ files: { 'snippet.bash': text }, command: ['bash', 'snippet.bash'] }),
  },
  kubernetes: {
    program: 'curl',
    timeout: CURL,
    prepare(text, fault) {
      const [secret, cronJob] = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS())
      const [container] = cronJob.spec.jobTemplate.spec.template.spec.containers
      if (container.envFrom[0].secretRef.name !== secret.metadata.name)
        throw new Error('the CronJob reads another Secret')
      const job = "your_job() { echo 'here goes your job'; }"
      const script = withFault(container.args[0], fault, job, 'your_job() { ./your-job; }')
      return { files: {}, command: ['env', `HEARTBEAT_URL=${secret.stringData.HEARTBEAT_URL}`, ...shell(script)] }
    },
  },
  python: {
    program: 'python3',
    timeout: ['timeout=10', 'timeout=4'],
    prepare: (text, fault) => ({
      files: {
        'snippet.py': withFault(
          text,
          fault,
          'print("here goes your job")',
          `raise RuntimeError(${JSON.stringify(fault)})`,
        ),
      },
      command: ['python3', 'snippet.py'],
    }),
  },
  node: {
    program: process.execPath,
    timeout: ['timeout(10_000)', 'timeout(4_000)'],
    prepare: (text, fault) => ({
      files: {
        'job.mjs': withFault(
          text,
          fault,
          "console.log('here goes your job')",
          `throw new Error(${JSON.stringify(fault)})`,
        ),
      },
      command: [process.execPath, 'job.mjs'],
    }),
  },
  go: {
    program: 'go',
    timeout: ['Timeout: 10 * time.Second', 'Timeout: 4 * time.Second'],
    prepare: (text, fault) => ({
      files: {
        'main.go': withFault(text, fault, '\treturn nil', `\treturn errors.New(${JSON.stringify(fault)})`),
        'go.mod': 'module job\n',
      },
      command: ['go', 'run', '.'],
    }),
  },
  powershell: {
    program: 'pwsh',
    timeout: ['-TimeoutSec 10', '-TimeoutSec 4'],
    prepare: (text) => ({ files: { 'job.ps1': text }, command: ['pwsh', '-File', 'job.ps1'] }),
  },
}

/** Whether the program that a snippet needs is on this machine. */
export function canRun(id: SnippetId): boolean {
  const { program } = RUNNERS[id]
  return program === null || spawnSync('sh', ['-c', 'command -v "$0"', program]).status === 0
}

/** Runs a snippet in an empty folder, beside a job `your-job` that fails with the text `fault`, unless that is empty. */
export async function runSnippet({ id, text }: Pick<Snippet, 'id' | 'text'>, folder: string, fault: string) {
  const { files, command } = RUNNERS[id].prepare(text, fault)
  await mkdir(folder, { recursive: true })
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  const job = join(folder, 'your-job')
  await writeFile(job, `#!/bin/sh\necho 'dumping ... ${fault}'\n${fault === '' ? '' : 'exit 3'}\n`)
  await chmod(job, 0o755)
  return new Promise<SnippetRun>((resolve) => {
    const [program, ...args] = command
    const child = execFile(program!, args, { cwd: folder, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : (child.exitCode ?? -1), output: `${stdout}${stderr}` }),
    )
  })
}

/** The snippet with a time-out of four seconds instead of ten. */
export function withShortTimeout<T extends Pick<Snippet, 'id' | 'text'>>(snippet: T): T {
  const [long, short] = RUNNERS[snippet.id].timeout
  return { ...snippet, text: replaceOnce(snippet.text, long, short) }
}

/** Of each URL that ends a run, the first request gets no response and the second one 503. */
export function startFront(pingUrl: string) {
  return startUnsteadyFront(pingUrl, (url, count) => {
    if (url.endsWith('/start')) return undefined
    return count === 1 ? 'no response' : count === 2 ? 503 : undefined
  })
}
