/** `npm run image` where it cannot build: one clear message. Builds are in test/e2e/image-builders.test.ts. */

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CHECKOUT } from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'

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

it('leaves nothing in dist/ after Ctrl-C', async () => {
  await using folder = await makeTempFolder()
  const started = join(folder.path, 'started')
  const script = `#!/bin/sh\ntouch ${started}\nexec sleep 60\n`
  writeFileSync(join(folder.path, 'buildah'), script, { mode: 0o755 })
  const list = () => (existsSync(join(CHECKOUT, 'dist')) ? readdirSync(join(CHECKOUT, 'dist')) : []).sort()
  const before = list()
  const command = [join(CHECKOUT, 'tools/image/run.ts')]
  const env = { PATH: `${folder.path}:/usr/bin:/bin` }
  // A group of its own, as that of a command in a terminal.
  const child = spawn(process.execPath, command, { env, stdio: 'ignore', detached: true })
  await eventually('the build runs', () => existsSync(started))
  expect(list()).not.toEqual(before)
  process.kill(-child.pid!, 'SIGINT')
  expect(await once(child, 'exit')).toEqual([1, null])
  expect(list()).toEqual(before)
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
