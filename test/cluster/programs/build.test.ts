/** What makes a program stale, with a stand-in for Go and a module of our own. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Build, buildPrograms } from './build.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-build-'))
  await mkdir(at('module'))
  await writeFile(at('module', 'go.mod'), 'module example.org/one\n')
  await writeFile(
    at('go'),
    `#!/bin/sh\ncase $1 in env) echo go9.9;; build) for word; do [ "$last" = -o ] && out=$word; last=$word; done
      echo "$@" >> ${at('calls')}; echo program > "$out";; esac\n`,
    { mode: 0o755 },
  )
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)
const PROGRAM = { name: 'one', source: '.' }

/** Resolves with the calls of `go build`. */
async function build(programs: Build['programs'] = [PROGRAM]): Promise<string[]> {
  const texts = { title: 'one', reason: 'none', need: 'one', cost: 'nothing', otherwise: 'do nothing' }
  const places = { module: at('module'), folder: at('built'), environment: { PATH: folder } }
  await rm(at('calls'), { force: true })
  await buildPrograms({ ...texts, ...places, programs, note: () => {} })
  const calls = await readFile(at('calls'), 'utf8').catch(() => '')
  return calls.split('\n').filter((line) => line !== '')
}

it.each([
  ['a pin', 'go.mod', 1],
  ['a checksum that is new', 'go.sum', 1],
  ['a source of our own', 'main.go', 1],
  ['another file', 'README.md', 0],
])('after a change of %s (%s) it builds so often: %i', async (_, file, times) => {
  expect(await build()).toHaveLength(1)
  expect(await build()).toHaveLength(0)
  await writeFile(at('module', file), 'changed\n')
  expect(await build()).toHaveLength(times)
})

it('sets the variables, and builds again with another value', async () => {
  const program = (version: string) => [{ ...PROGRAM, variables: { 'main.version': version, 'main.kind': 'test' } }]
  expect((await build(program('1')))[0]).toMatch(/ -ldflags -s -w -X main\.version=1 -X main\.kind=test -o .* \.$/)
  expect(await build(program('1'))).toHaveLength(0)
  expect(await build(program('2'))).toHaveLength(1)
})
