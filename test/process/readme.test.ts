/**
 * The commands of the README from a clone to the first alarm, the first calls of the API, and the commands of the
 * documents that need nothing but a running service, as a person pastes them. Only addresses are replaced: ports are
 * free ones.
 */

import { execFile } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiClient, createApiClient } from '../support/api-client.ts'
import { type Block, CHECKOUT, listBlocksOf } from '../support/documents.ts'
import { findFreePort } from '../support/ports.ts'
import {
  assertPackagesAreInstalled,
  type Service,
  type ServiceProcess,
  spawnService,
} from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { startUnsteadyFront } from '../support/unsteady-front.ts'

const blocks = listBlocksOf('test/process/readme.test.ts')
const of = (document: string) => blocks.filter((block) => block.document === document)
const [clone, cronLine, ...moreOfReadme] = of('README.md')
const [start, receive, use, ...moreOfApi] = of('docs/use/api.md')
const recipes = of('docs/use/pings.md')
const [reachable] = of('docs/get-started/script.md')
const APART = ['README.md', 'docs/use/api.md', 'docs/use/pings.md', 'docs/get-started/script.md']
const others = [...moreOfApi, ...blocks.filter(({ document }) => !APART.includes(document))]
/** Ends at the first command that fails, also within `$(...)` and pipes. */
const SHELL = ['bash', '-O', 'inherit_errexit', '-e', '-o', 'pipefail', '-c']
const API_KEY = /BOOTSTRAP_API_KEY=(\S+)/.exec(start!.text)![1]!
const PROJECT_ID = /BOOTSTRAP_PROJECT_ID=(\S+)/.exec(start!.text)![1]!
/** This checkout is the clone. */
const CLONED = 'git() { [ "$1" = clone ]; }; cd() { [ "$1" = heartbeat-operator ]; }'

let temp: TempFolder
let service: Service
let receiver: ServiceProcess
let receiverPort: string
let client: ApiClient

const asProgram = (script: string) => ({ command: 'bash', args: ['-c', script], isGroup: true })
const withAddresses = (commands: string) =>
  commands
    .replaceAll('http://127.0.0.1:8080', service.ping)
    .replaceAll('http://127.0.0.1:8081/api/v1', service.api)
    .replaceAll('9999', receiverPort)

beforeAll(async () => {
  assertPackagesAreInstalled()
  temp = await makeTempFolder()
  const starting = spawnService({}, asProgram(start!.text.replace('/tmp/heartbeat-try', join(temp.path, 'try'))))
  service = Object.assign(starting, await starting.ready())
  receiverPort = await findFreePort()
  receiver = spawnService({}, asProgram(withAddresses(receive!.text)))
  client = await createApiClient(service.api, API_KEY)
})
afterAll(async () => {
  await receiver?.kill()
  await service?.kill()
  await temp?.remove()
})

it.concurrent('the README leads from a clone to a line of crontab, and to a check that is down', async ({ expect }) => {
  expect(moreOfReadme).toEqual([])
  const program = asProgram(`set -e; ${CLONED}\n${clone!.text}`)
  await using fresh = spawnService({ DATA_DIR: join(temp.path, 'clone') }, program)
  const { ping, api } = await fresh.ready()
  const [, project] = await fresh.waitFor(/project +(\S+)/)
  const [, email, password] = await fresh.waitFor(/log-in +(\S+) (\S+)/)
  const stranger = await createApiClient(api, '')
  const { body: tokens } = await stranger.post('/auth/login', { email, password }, { key: null })
  const user = await createApiClient(api, tokens.access_token)
  const fields = { project_id: project, name: 'Nightly backup', period_seconds: 10, grace_seconds: 0 }
  const { body: check } = await user.post('/checks', fields)

  const [, command] = /^(?:\S+ ){5}(.+)$/.exec(cronLine!.text.trim())!
  const here = command!.replace('http://127.0.0.1:8080', ping).replace('<public_id>', check.public_id)
  expect(here).toContain(`/usr/bin/true && curl`)
  // As cron runs it.
  expect(await run(['/bin/sh', '-c', here], temp.path)).toEqual({ status: 0, output: expect.any(String) })
  const read = async () => (await user.get(`/checks/${check.id}`)).body
  await expect.poll(read).toMatchObject({ status: 'down', status_reason: 'missed', last_ping_at: expect.any(String) })
})

it.concurrent('a service for other machines shows the names that it is given', async () => {
  expect(reachable!.text).toContain('BIND_ADDRESS=0.0.0.0 ')
  const program = asProgram(reachable!.text.replace('0.0.0.0', '127.0.0.2'))
  await using fresh = spawnService({ DATA_DIR: join(temp.path, 'reachable') }, program)
  expect((await fresh.ready()).ping).toMatch('http://127.0.0.2:')
  expect(fresh.stdout).toContain(' http://monitor.example.com:8080/ping/')
  expect(fresh.stdout).toContain(' http://monitor.example.com:8081/')
})

it.concurrent('the first calls of the API lead to an alarm', async () => {
  const { status, output } = await run([...SHELL, withAddresses(use!.text)], CHECKOUT)
  expect({ status, output }).toEqual({ status: 0, output: expect.stringContaining('"reason":"missed"') })
  expect(output).toMatch(/"reason":"missed".*"reason":"first_success".*"reason":"created"/)
  await receiver.waitFor(/type: 'check\.down'[\s\S]*type: 'check\.up'/)
})

it.concurrent('the other documents show commands that work, one after the other in one shell', async () => {
  expect(others.length).toBeGreaterThan(0)
  const [definitions = ''] = use!.text.split('\n\n')
  const { status, output } = await run(
    [...SHELL, withAddresses([definitions, ...others.map(({ text }) => text)].join('\n'))],
    CHECKOUT,
  )
  expect({ status, output }).toEqual({ status: 0, output: expect.any(String) })
  // The signature that docs/use/channels.md promises.
  expect(output).toContain('fkvUNiuWvmq9VUdIZTgxsuRAHnaPsVnmF5Yp545ihwo=')
})

describe.concurrent('the recipe', () => {
  const FILES = { sh: 'recipe.sh', bash: 'recipe.bash', python: 'recipe.py', js: 'recipe.js' } as Record<string, string>
  const PROGRAMS = { sh: 'sh', bash: 'bash', python: 'python3', js: process.execPath } as Record<string, string>
  const cases = recipes.map((recipe) => ({ ...recipe, name: `${recipe.language} in line ${recipe.line}` }))

  it.each(cases)('$name reports a success, after a retry', async (recipe) => {
    const { status, output, pings } = await runRecipe(recipe, '')
    expect({ status, output }).toEqual({ status: 0, output: expect.any(String) })
    expect(pings[0]).toMatchObject({ type: 'success', exit_code: 0 })
    expect(pings.map(({ type }) => type)).toEqual(isOneLine(recipe) ? ['success'] : ['success', 'start'])
  })

  it.each(cases)('$name reports a failure with its exit code and its text, and fails itself', async (recipe) => {
    const { status, output, pings } = await runRecipe(recipe, 'connection refused')
    expect(output).toContain('connection refused')
    expect(status).not.toBe(0)
    if (isOneLine(recipe)) expect(pings).toEqual([])
    else
      expect(pings[0]).toMatchObject({
        type: 'fail',
        exit_code: status,
        body: expect.stringContaining('connection refused'),
      })
  })

  it.each(cases.filter(({ language }) => language === 'python'))(
    '$name reports a text that is no Unicode, such as the name of a file',
    async (recipe) => {
      const { pings } = await runRecipe(recipe, 'no file \\udce9.txt')
      expect(pings[0]).toMatchObject({ type: 'fail', exit_code: 1, body: expect.stringContaining('no file ?.txt') })
    },
  )

  const isOneLine = ({ text }: Block) => text.trim().split('\n').length === 1

  /** In a folder with a job that fails with the text `fault`, unless that is empty. Each URL gets 503 once. */
  async function runRecipe({ language, text }: Block, fault: string) {
    const { body: check } = await client.post('/checks', { project_id: PROJECT_ID, name: `Recipe ${language}` })
    const folder = join(temp.path, check.id)
    await mkdir(folder)
    await writeFile(join(folder, FILES[language]!), text)
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'your-job'), '#!/bin/sh\necho "dumping ... $FAULT"\n[ -z "$FAULT" ] || exit 3\n')
    await chmod(join(folder, 'your-job'), 0o755)
    await writeFile(
      join(folder, 'your-job.js'),
      'export const main = () => { if (process.env.FAULT) throw new Error(process.env.FAULT) }\n',
    )
    await writeFile(
      join(folder, 'your_job.py'),
      'import os\ndef main():\n  if os.environ["FAULT"]:\n    raise RuntimeError(os.environ["FAULT"].replace("\\\\udce9", "\\udce9"))\n',
    )
    await using unsteady = await startUnsteadyFront(service.ping, (_, count) => (count === 1 ? 503 : undefined))
    const environment = { HEARTBEAT_URL: `${unsteady.url}/ping/${check.public_id}`, FAULT: fault }
    const ended = await run([PROGRAMS[language]!, FILES[language]!], folder, environment)
    const { body } = await client.get(`/checks/${check.id}/pings`)
    return { ...ended, pings: body.pings as { type: string; exit_code: number | null; body: string | null }[] }
  }
})

/** Standard output and standard error together. */
function run([program, ...args]: string[], cwd: string, environment: Record<string, string> = {}) {
  return new Promise<{ status: number; output: string }>((resolve) => {
    const child = execFile(
      program!,
      args,
      { cwd, env: { ...process.env, ...environment }, timeout: 60_000 },
      (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : (child.exitCode ?? -1), output: `${stdout}${stderr}` }),
    )
  })
}
