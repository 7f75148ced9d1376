/** Linters of OpenAPI documents report nothing about ours. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { use } from '../support/use.ts'
import { startTestApp, writeDocument } from './service.ts'
import { call, installFromNpm, makeRunFolder } from './tools.ts'

let run: Awaited<ReturnType<typeof makeRunFolder>>

const app = use(startTestApp)
beforeAll(async () => {
  run = await makeRunFolder(await installFromNpm())
  await writeDocument(app, run.path)
})
afterAll(async () => {
  await run?.[Symbol.asyncDispose]()
})

it('Redocly, recommended-strict, reports nothing', async () => {
  const args = ['redocly', 'lint', '--extends=recommended-strict', '--format=json', 'openapi.json']
  const report = JSON.parse(await call('npx', args, { cwd: run.path }))
  expect(report.problems).toEqual([])
})

it('Spectral, spectral:oas, reports nothing, not even a hint', async () => {
  await writeFile(join(run.path, 'ruleset.yaml'), 'extends: spectral:oas\n')
  const args = ['spectral', 'lint', '--ruleset=ruleset.yaml', '--fail-severity=hint', '--format=json', 'openapi.json']
  // A sentence follows the list. With results, the status is not 0.
  expect(await call('npx', args, { cwd: run.path })).toMatch(/^\[\]/)
})

it('notice a fault: the document without tags and examples that fit', async () => {
  // biome-ignore lint/suspicious/noExplicitAny: it is about to lose its form
  const document: any = await (await fetch(`${app.apiUrl}/openapi.json`)).json()
  delete document.tags
  document.paths['/checks'].post.requestBody.content['application/json'].example = {}
  await writeFile(join(run.path, 'faulty.json'), JSON.stringify(document))
  await expect(
    call('npx', ['redocly', 'lint', '--extends=recommended-strict', '--format=json', 'faulty.json'], { cwd: run.path }),
  ).rejects.toThrow(/operation-tag-defined|no-invalid-media-type-examples/)
})
