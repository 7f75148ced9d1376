/**
 * The README's way from `helm install` to the first alarm, its commands pasted one block after the other into one shell. Only the
 * images are others, since the node has no registry; nothing else is added.
 */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { VALUES } from './installation.ts'
import { openStage, type Stage } from './stage.ts'

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const chapter = README.slice(README.indexOf('\n## In Kubernetes'), README.indexOf('**No cluster at hand?**'))
const blocks = [...chapter.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands!)

/** The README itself says where webhooks may go. */
const IMAGES = VALUES.filter((value) => /image|storage/.test(value)).map((value) => `--set ${value}`)

/** The same commands with our images: of the release, and of the example's job. */
const STAND_INS = `
set -e
trap 'kill $!' EXIT
helm() {
  if [ "$1" = install ]; then command helm "$@" ${IMAGES.join(' ')}
  else command helm "$@"; fi
}
kubectl() {
  if [ "$1 $2" = 'apply -f' ]; then sed 's|image: curlimages/curl:.*|image: localhost/job:dev|' "$3" | command kubectl apply -f -
  elif [ "$3" = port-forward ]; then exec kubectl "$@" # in the background: so that it is what the trap ends
  else command kubectl "$@"; fi
}
`

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
  await stage.makeVolume('heartbeat', 999)
})
afterAll(() => stage?.[Symbol.asyncDispose]())

it('the commands of the README lead from helm install to the first alarm', async () => {
  expect(blocks).toHaveLength(4)
  try {
    const printed = await stage.shell(`${STAND_INS}${blocks.join('\n')}`)
    const [, , told] = printed.split(/(?=^NAME +STATE)/m)
    expect(printed).toMatch(/Phase: +Succeeded/)
    expect(told).toMatch(/^every-minute +down +True/m)
    expect(told).toMatch(/Warning +Missed +HeartbeatCheck\/every-minute/)
    expect(told).toMatch(/type: 'check\.down'/)
  } catch (error) {
    throw new Error(`logs are kept in ${await stage.keepLogs()}`, { cause: error })
  }
})
