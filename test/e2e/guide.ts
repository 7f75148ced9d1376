/**
 * docs/get-started/kubernetes.md, which has the three commands of the README, as steps of the story: its blocks, one
 * after the other in one shell. Only the images are replaced, because the node has no registry, and the logs of failed
 * Jobs are asked for. The story goes on while the shell sleeps.
 */

import { expect } from 'vitest'
import { listBlocksOf } from '../support/documents.ts'
import { eventually } from '../support/until.ts'
import { REASONS, readPicture, settle, toPicture } from './demo.ts'
import { LOGS, VALUES } from './installation.ts'
import type { Stage } from './stage.ts'
import type { Story } from './steps.ts'

const blocks = listBlocksOf('test/e2e/readme.test.ts')
const guide = blocks.filter(({ document }) => document === 'docs/get-started/kubernetes.md').map(({ text }) => text)
const shown = blocks.filter(({ document }) => document === 'README.md').map(({ text }) => text)
const linesOf = (texts: readonly string[]) => texts.join('').trim().split('\n')

/** Without `allowedTargets`, which the guide sets itself. */
const IMAGES = VALUES.filter((value) => /image|storage/.test(value)).map((value) => `--set ${value}`)
const INSTALLED_MS = 600_000

/** Replaces the images: of the release, and of the example's job. */
const STAND_INS = `
set -e
trap 'kill $!' EXIT
helm() {
  if [ "$1" = install ]; then command helm "$@" ${[...IMAGES, ...LOGS].join(' ')}
  else command helm "$@"; fi
}
kubectl() {
  if [ "$1 $2" = 'apply -f' ]; then sed 's|image: busybox:.*|image: localhost/job:dev|' "$3" | command kubectl apply -f -
  elif [ "$3" = port-forward ]; then exec kubectl "$@" # in the background: so that the trap ends it
  else command kubectl "$@"; fi
}
`

/** Each registers its steps where it is called. */
export function playGuide(stage: () => Stage, { step }: Story) {
  let printed: Promise<string>

  async function isLabelled(): Promise<boolean> {
    const { body } = await stage().api('GET', '/api/v1/namespaces/payments')
    return body.metadata.labels['heartbeat-operator.io/watch'] === 'true'
  }

  /** Until the label is set. */
  function begin(): void {
    step('the commands of the README are a part of the guide, in its order', async () => {
      const lines = linesOf(shown)
      expect(lines).toHaveLength(3)
      expect(linesOf(guide).filter((line) => lines.includes(line))).toEqual(lines)
    })

    step('the guide leads from helm install to the label of a namespace with six CronJobs', async () => {
      expect(guide).toHaveLength(4)
      printed = stage().shell(`${STAND_INS}${guide.join('\n')}`)
      printed.catch(() => {}) // the last step says it
      await Promise.race([eventually('the namespace is labelled', isLabelled, INSTALLED_MS), printed])
    })
  }

  function end(): void {
    step('three minutes later the guide shows each that is broken, with its reason', async () => {
      const text = await printed
      expect(text).toMatch(/Phase: +Succeeded/)
      const table = text.slice(text.search(/^NAME +STATE/m))
      expect(settle(toPicture(table))).toEqual(readPicture())
      for (const [name, reason] of Object.entries(REASONS)) {
        expect(table).toMatch(new RegExp(`Warning +\\w+ +HeartbeatCheck/${name} .*${reason.source}`))
        expect(table).toMatch(reason)
      }
      const downs = [...table.matchAll(/type: 'check\.down'.*?name: '([^']*)'/gs)].map(([, name]) => name!)
      expect(downs.filter((name) => !OF_THE_STORY.includes(name)).sort()).toEqual(Object.keys(REASONS).sort())
    })
  }

  return { begin, end }
}

/** Checks of the story that go down meanwhile. */
const OF_THE_STORY = ['backup', 'report']
