/**
 * Generated clients, by the commands of docs/use/api.md: the type checker accepts them in strict mode, and they work
 * against the service.
 */

import { copyFile, cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Block, listBlocksOf } from '../support/documents.ts'
import { use } from '../support/use.ts'
import { environmentOf, startTestApp } from './service.ts'
import { call, HERE, installFromNpm, makeRunFolder } from './tools.ts'

const TIMEOUT_MS = 300_000
const DOCUMENTED = listBlocksOf('test/clients/generators.test.ts')

/** What each generated client prints: the same calls, the same answers. */
const EXPECTED = {
  created: 'new',
  code: 'invalid_request',
  wrong: 'body.name',
  answer: 'OK',
  pings: [['fail', 3, 'dump failed']],
  listed: ['Generated'],
  paused: 'paused',
  url: 'https://hooks.example.com/heartbeat',
  deleted: 204,
}

let npm: string
let run: Awaited<ReturnType<typeof makeRunFolder>>

const app = use(startTestApp)
beforeAll(async () => {
  npm = await installFromNpm()
})

/** The block of the document that contains `word`, with the addresses and the key of this service. */
function readBlock(language: string, word: string): string {
  const blocks = DOCUMENTED.filter((block: Block) => block.language === language && block.text.includes(word))
  expect(blocks, `blocks of docs/use/api.md in ${language} with ${word}`).toHaveLength(1)
  return blocks[0]!.text
    .replaceAll('http://127.0.0.1:8081/api/v1', app.apiUrl)
    .replaceAll('http://127.0.0.1:8080', app.pingUrl)
    .replaceAll('hbk_...', app.apiKey)
    .replaceAll('0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10', app.projectId)
}

const generate = (word: string, cwd: string) => call('sh', ['-ec', readBlock('sh', word)], { cwd })
const countChecks = async () => (await app.client.get(`/checks?project_id=${app.projectId}`)).body.checks.length

describe.each([
  ['openapi-typescript', 'npx openapi-typescript ', 'openapi-fetch.ts', 'openapi-fetch'],
  ['@hey-api/openapi-ts', 'npx openapi-ts ', 'hey-api.ts', './client'],
])('%s', (_, command, program, library) => {
  beforeEach(async () => {
    run = await makeRunFolder(npm)
    return () => run[Symbol.asyncDispose]()
  })

  it('generates a client that strict TypeScript accepts and that works', { timeout: TIMEOUT_MS }, async () => {
    await copyFile(join(HERE, 'programs/tsconfig.json'), join(run.path, 'tsconfig.json'))
    await copyFile(join(HERE, 'programs/as-bundlers.mjs'), join(run.path, 'as-bundlers.mjs'))
    await writeFile(join(run.path, 'package.json'), '{"type": "module"}')
    await generate(command, run.path)
    await copyFile(join(HERE, 'programs', program), join(run.path, 'program.ts'))
    await writeFile(join(run.path, 'documented.ts'), readBlock('ts', library))
    await call('npx', ['tsc'], { cwd: run.path })
    const node = (name: string) =>
      call(process.execPath, ['--import=./as-bundlers.mjs', join('built', name)], {
        cwd: run.path,
        env: environmentOf(app),
      })
    expect(JSON.parse(await node('program.js'))).toEqual(EXPECTED)
    const before = await countChecks()
    await node('documented.js')
    expect(await countChecks()).toBe(before + 1)
  })
})

const NEED_GO = 'Install Go (https://go.dev/dl; its version is in test/clients/go/go.mod), and start again.'

it('oapi-codegen generates a client that go vet accepts and that works', {
  timeout: TIMEOUT_MS,
}, async () => {
  const settings = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly' }
  await using folder = await makeRunFolder(npm)
  const cwd = folder.path
  await cp(join(HERE, 'go'), cwd, { recursive: true })
  await call('go', ['version'], { cwd, env: settings }, NEED_GO)
  await mkdir(join(cwd, 'heartbeat'))
  await call('sh', ['-ec', readBlock('sh', 'oapi-codegen')], { cwd, env: settings })
  await mkdir(join(cwd, 'documented'))
  await writeFile(join(cwd, 'documented/main.go'), readBlock('go', 'package main'))
  await call('go', ['vet', './...'], { cwd, env: settings })
  expect(JSON.parse(await call('go', ['run', '.'], { cwd, env: { ...settings, ...environmentOf(app) } }))).toEqual(
    EXPECTED,
  )
  const before = await countChecks()
  await call('go', ['run', './documented'], { cwd, env: settings })
  expect(await countChecks()).toBe(before + 1)
})
