/** `npm run image` where it cannot build: one clear message. Builds are in test/e2e/image-builders.test.ts. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CHECKOUT } from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

function image(path: string, ...args: string[]) {
  const command = [join(CHECKOUT, 'tools/image/run.ts'), ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { env: { PATH: path }, encoding: 'utf8' })
  return { status, stdout, stderr }
}

const NONE = 'No builder of images was found. Install buildah, podman, or docker with buildx.\n'

it('names the builders that it knows where there is none', () => {
  expect(image('/nowhere')).toEqual({ status: 1, stdout: '', stderr: NONE })
})

it('says why it does not take a docker that cannot build', async () => {
  await using folder = await makeTempFolder()
  mkdirSync(join(folder.path, 'bin'))
  const docker = join(folder.path, 'bin/docker')
  writeFileSync(docker, '#!/bin/sh\necho "no daemon" >&2\nexit 1\n', { mode: 0o755 })
  const why = `${docker} is there, but \`docker buildx inspect --bootstrap\` fails: no daemon\n`
  expect(image(join(folder.path, 'bin'))).toEqual({ status: 1, stdout: '', stderr: NONE + why })
})

it.each([[['--arch', 'mips']], [['--push', 'no-registry']], [['--push']], [['now']]])('rejects %j', (args) => {
  const { status, stderr } = image('/nowhere', ...args)
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(
      /\nusage: npm run image -- \[--arch amd64\|arm64\] \[--twice\] \[--push REGISTRY\/REPOSITORY\]\n$/,
    ),
  ])
})
