/**
 * The way from `helm install` to the first alarm in docs/get-started/kubernetes.md, which has the three commands of the README:
 * one block after the other in one shell. Only the images are replaced, because the node has no registry. Four CronJobs are
 * broken in four ways, and the reasons are read.
 */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { listBlocksOf } from '../support/documents.ts'
import { REASONS, readPicture, settle, toPicture } from './demo.ts'
import { VALUES } from './installation.ts'
import { openStage, type Stage } from './stage.ts'

const blocks = listBlocksOf('test/e2e/readme.test.ts')
const story = blocks.filter(({ document }) => document === 'docs/get-started/kubernetes.md').map(({ text }) => text)
const shown = blocks.filter(({ document }) => document === 'README.md').map(({ text }) => text)
const linesOf = (texts: readonly string[]) => texts.join('').trim().split('\n')

/** Without `allowedTargets`, which the story sets itself. */
const IMAGES = VALUES.filter((value) => /image|storage/.test(value)).map((value) => `--set ${value}`)

/** Replaces the images: of the release, and of the example's job. */
const STAND_INS = `
set -e
trap 'kill $!' EXIT
helm() {
  if [ "$1" = install ]; then command helm "$@" ${IMAGES.join(' ')}
  else command helm "$@"; fi
}
kubectl() {
  if [ "$1 $2" = 'apply -f' ]; then sed 's|image: busybox:.*|image: localhost/job:dev|' "$3" | command kubectl apply -f -
  elif [ "$3" = port-forward ]; then exec kubectl "$@" # in the background: so that the trap ends it
  else command kubectl "$@"; fi
}
`

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
  await stage.makeVolume('heartbeat', 999)
})
afterAll(() => stage?.[Symbol.asyncDispose]())

it('the commands of the README are a part of the story, in its order', () => {
  const lines = linesOf(shown)
  expect(lines).toHaveLength(3)
  expect(linesOf(story).filter((line) => lines.includes(line))).toEqual(lines)
})

it('the story leads from helm install to the first alarm', async () => {
  expect(story).toHaveLength(4)
  try {
    const printed = await stage.shell(`${STAND_INS}${story.join('\n')}`)
    expect(printed).toMatch(/Phase: +Succeeded/)
    const table = printed.slice(printed.search(/^NAME +STATE/m))
    expect(settle(toPicture(table))).toEqual(readPicture())
    for (const [name, reason] of Object.entries(REASONS)) {
      expect(table).toMatch(new RegExp(`Warning +\\w+ +HeartbeatCheck/${name} .*${reason.source}`))
      expect(table).toMatch(reason)
    }
    expect(table.match(/type: 'check\.down'/g)).toHaveLength(Object.keys(REASONS).length)
  } catch (error) {
    throw new Error(`logs are kept in ${await stage.keepLogs()}`, { cause: error })
  }
})
